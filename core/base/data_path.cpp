#include "core/base/data_path.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

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

std::vector<std::string> shipped(const std::string& kind) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(data_directory()) / kind, ignored))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace foreshard
