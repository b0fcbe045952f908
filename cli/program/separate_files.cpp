#include "cli/program/separate_files.h"

#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "exec/data/safetensors.h"

namespace foreshard {

namespace fs = std::filesystem;

void expect_separate_files(const Arguments& arguments, const std::vector<std::string>& read,
                           const std::vector<std::string>& written) {
  std::map<fs::path, std::string> taken;  // file -> the option that names it
  const auto place = [&](const std::string& option) {
    const std::string& file = arguments.text(option);
    if (file.empty()) throw Error(kCommandLine, option, "nothing", "the name of a file");
    std::error_code ignored;
    return fs::weakly_canonical(fs::absolute(file, ignored), ignored);
  };
  for (const std::string& option : read)
    if (arguments.has(option)) taken.emplace(place(option), option);
  for (const std::string& option : written) {
    if (!arguments.has(option) || fs::is_character_file(arguments.text(option)))
      continue;  // /dev/null may be named more than once
    const auto [other, is_new] = taken.emplace(place(option), option);
    if (!is_new)
      throw Error(kCommandLine, option, arguments.text(option),
                  "another file than that of " + other->second + ", which it would replace");
  }
}

void expect_places(const Arguments& arguments, const std::vector<std::string>& written) {
  for (const std::string& option : written)
    if (arguments.has(option)) expect_writable(arguments.text(option));
}

void expect_folders(const Arguments& arguments, const std::vector<std::string>& written) {
  for (const std::string& option : written) {
    if (!arguments.has(option)) continue;
    const fs::path file = arguments.text(option), folder = file.has_parent_path() ? file.parent_path() : ".";
    std::error_code failed;
    if (fs::is_directory(file, failed)) throw Error(file, "", "a folder", "the name of a file");
    if (!fs::is_directory(folder, failed))
      throw Error(file, "", failed ? failed.message() : "Not a directory", "a file that can be written");
  }
}

}  // namespace foreshard
