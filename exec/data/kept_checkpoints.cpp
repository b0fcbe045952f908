#include "exec/data/kept_checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_replacement.h"

namespace foreshard {

namespace fs = std::filesystem;

void keep_checkpoints(const std::string& path, int step, int keep) {
  const fs::path file = link_target(path);
  const std::string prefix = file.filename().string() + ".step-";
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const fs::path kept = folder / (prefix + std::to_string(step));
  std::error_code problem;
  fs::remove(kept, problem);
  fs::create_hard_link(file, kept, problem);
  if (problem) throw DeviceError("second name " + kept.string(), problem.message() + "; " + path + " is whole");
  std::vector<std::tuple<fs::file_time_type, int, fs::path>> all;  // time of writing, step, name
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    const std::string number = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
    if (number.empty() || number.size() > 9 || number.find_first_not_of("0123456789") != std::string::npos) continue;
    all.emplace_back(entry.last_write_time(problem), std::stoi(number), entry.path());
  }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < all.size(); ++i) fs::remove(std::get<2>(all[i]), problem);
}

}  // namespace foreshard
