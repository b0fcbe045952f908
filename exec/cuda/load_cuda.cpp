#include "exec/cuda/load_cuda.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"

namespace foreshard {

// The folders in which the module may be: next to the program, or where it is installed.
static std::string module_path() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored), name = "libforeshard_cuda.so";
  const fs::path places[] = {program.parent_path() / name, program.parent_path().parent_path() / "lib" / "foreshard" / name};
  for (const fs::path& place : places)
    if (fs::exists(place, ignored)) return place.string();
  throw DeviceError("--device cuda", "libforeshard_cuda.so is neither beside " + program.string() + " nor in " +
                                         places[1].parent_path().string());
}

std::unique_ptr<gpu::Runtime> load_cuda() {
  const std::string path = module_path();
  // CUDA streams share hardware queues (connections). A task that waits at the head of a queue blocks those after it, maybe the very one
  // that it waits for. CUDA reads this variable when it creates a context; 32 is the maximum, 8 the default.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) {
    const char* why = dlerror();
    throw DeviceError("dlopen of " + path, why ? why : "no reason");
  }
  const auto entry = reinterpret_cast<gpu::ModuleEntry>(dlsym(module, gpu::kModuleEntry));
  if (!entry) throw DeviceError("dlsym in " + path, std::string("no ") + gpu::kModuleEntry);
  const char* why = "no reason";
  std::unique_ptr<gpu::Runtime> runtime(entry(gpu::kModuleVersion, &why));
  if (!runtime) throw DeviceError("--device cuda", why);
  return runtime;
}

}  // namespace foreshard
