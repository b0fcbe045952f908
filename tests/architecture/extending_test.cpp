// docs/extending.md against the tree: excerpts stand in their files, each example is named by the files of its table and by no other, and
// no more of them have to be edited than the page says.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace foreshard {
namespace {

namespace fs = std::filesystem;
const fs::path kSource = FORESHARD_SOURCE;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

using Files = std::map<std::string, std::string>;  // text by path from the root

const Files& sources() {
  static const Files files = [] {
    Files found;
    for (const char* room : {"core", "replay", "sim", "strategy", "exec", "report", "validation", "cli", "gui", "frameworks"})
      for (const auto& entry : fs::recursive_directory_iterator(kSource / room)) {
        const std::string end = entry.path().extension().string();
        if (end == ".h" || end == ".cpp" || end == ".cu" || end == ".json")
          found[fs::relative(entry.path(), kSource).string()] = text_of(entry.path());
      }
    return found;
  }();
  return files;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> complaints(const std::string& page, const Files& files) {
  std::vector<std::string> out;
  std::string section, excerpt, excerpt_file, pattern;
  std::map<std::string, std::string> listed;  // file -> what becomes of it
  const auto end_of_section = [&](int most) {
    if (pattern.empty()) return;
    const std::regex named(pattern);
    int edited = 0;
    for (const auto& [path, text] : files)
      if (std::regex_search(text, named) != listed.contains(path))
        out.push_back(section + ": " + path + (listed.contains(path) ? " does not name it" : " names it and is not listed"));
    for (const auto& [path, how] : listed) {
      edited += how == "edited" ? 1 : 0;
      if (!files.contains(path)) out.push_back(section + ": no file " + path);
    }
    if (edited > most)
      out.push_back(section + ": " + std::to_string(edited) + " edited files, at most " + std::to_string(most));
    pattern.clear(), listed.clear();
  };
  static const std::regex fence(R"(```(\w+) (\S+))"), named(R"(Named by `(.+)` in:)"), most(R"(At most (\d+) edited\..*)");
  static const std::regex row(R"(\| `([^`]+)` \| .* \| (new|edited|test|optional) \|)");
  std::smatch match;
  for (const std::string& line : lines_of(page)) {
    if (!excerpt_file.empty()) {
      if (line != "```") {
        excerpt += line + "\n";
        continue;
      }
      if (text_of(kSource / excerpt_file).find(excerpt) == std::string::npos)
        out.push_back(section + ": the excerpt is not in " + excerpt_file);
      excerpt_file.clear(), excerpt.clear();
    } else if (line.starts_with("## ")) {
      if (!pattern.empty()) out.push_back(section + ": no limit");
      section = line.substr(3);
    } else if (std::regex_match(line, match, fence)) {
      excerpt_file = match[2];
    } else if (std::regex_match(line, match, named)) {
      pattern = match[1];
    } else if (std::regex_match(line, match, row)) {
      listed[match[1]] = match[2];
    } else if (std::regex_match(line, match, most)) {
      end_of_section(std::stoi(match[1]));
    }
  }
  return out;
}

TEST(Extending, ThePageIsTrue) {
  for (const std::string& complaint : complaints(text_of(kSource / "docs/extending.md"), sources())) ADD_FAILURE() << complaint;
}

TEST(Extending, EveryKindOfThingHasASection) {
  const std::string page = text_of(kSource / "docs/extending.md");
  for (const char* section : {"An operator", "A schedule", "An algorithm of collectives", "A memory policy", "A codec",
                              "A kind of axis", "A model family", "A cluster", "An export"})
    EXPECT_NE(page.find("\n## " + std::string(section) + "\n"), std::string::npos) << section;
}

TEST(Extending, WhatIsWrongIsTold) {
  const Files files = {{"a.cpp", "x = Thing;"}, {"b.cpp", "Thing y;"}, {"c.cpp", "nothing"}};
  const std::string head = "## A thing\nNamed by `Thing` in:\n";
  EXPECT_TRUE(complaints(head + "| `a.cpp` | it | new |\n| `b.cpp` | table | edited |\nAt most 1 edited.\n", files).empty());
  EXPECT_EQ(complaints(head + "| `a.cpp` | it | new |\nAt most 1 edited.\n", files).size(), 1U);  // b.cpp is missing
  EXPECT_EQ(complaints(head + "| `a.cpp` | it | edited |\n| `b.cpp` | it | edited |\nAt most 1 edited.\n", files).size(), 1U);
  EXPECT_EQ(
      complaints(head + "| `a.cpp` | it | new |\n| `b.cpp` | it | new |\n| `c.cpp` | it | new |\nAt most 1 edited.\n", files)
          .size(),
      1U);
  EXPECT_EQ(complaints("## A\n```cpp core/op/op.h\nno such line\n```\n", files).size(), 1U);
  EXPECT_EQ(complaints(head + "| `a.cpp` | it | new |\n## B\n", files).size(), 1U);  // no limit
}

}  // namespace
}  // namespace foreshard
