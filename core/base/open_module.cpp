#include "core/base/open_module.h"

#include <dlfcn.h>

#include <filesystem>

#include "core/base/error.h"

namespace foreshard {

std::string module_path(const std::string& operation, const std::string& name, const std::string& advice) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored), file = "lib" + name + ".so";
  const fs::path folder = program.parent_path(), above = folder.parent_path(), installed = above / "lib" / "foreshard";
  for (const fs::path& place : {folder, above, installed})
    if (fs::exists(place / file, ignored)) return (place / file).string();
  throw DeviceError(operation,
                    file.string() + " is neither beside " + program.string() + " nor in " + installed.string() + advice);
}

void* module_symbol(const std::string& operation, const std::string& name, const char* symbol, const std::string& advice) {
  const std::string path = module_path(operation, name, advice);
  void* const module = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (module == nullptr) {
    const char* const why = dlerror();
    throw DeviceError("dlopen of " + path, why != nullptr ? why : "no reason");
  }
  void* const found = dlsym(module, symbol);
  if (found == nullptr) throw DeviceError("dlsym in " + path, std::string("no ") + symbol);
  return found;
}

}  // namespace foreshard
