#include "core/base/data_path.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>

namespace foreshard {

namespace fs = std::filesystem;

static bool holds_data(const fs::path& directory) {
  std::error_code ignored;
  return fs::is_directory(directory / "models", ignored) && fs::is_directory(directory / "topologies", ignored);
}

std::string data_directory() {
  if (const char* chosen = std::getenv("FORESHARD_DATA"); chosen && *chosen) return chosen;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    const fs::path installed = program.parent_path().parent_path() / "share" / "foreshard";
    if (holds_data(installed)) return installed.string();
  }
  return FORESHARD_SOURCE_DATA;
}

// Not by a directory_iterator, which ends the program where it gets no memory (libstdc++ 12), or finds an empty folder.
std::vector<std::string> shipped(const std::string& kind) {
  std::vector<std::string> names;
  const std::string folder = data_directory() + "/" + kind;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open && errno == ENOMEM) throw std::bad_alloc();
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
    const fs::path name = entry->d_name;
    if (name.extension() == ".json") names.push_back(name.stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace foreshard
