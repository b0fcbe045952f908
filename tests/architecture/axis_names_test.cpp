// Names of axes are for people: what an axis is stands in its kinds. No source compares the name of an axis, of a group or of a stream,
// and what reads plans has no word for an axis, but for the reader of old plan files, where names said the kinds.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/architecture/layout.h"

namespace foreshard::layout {
namespace {

namespace fs = std::filesystem;

// Works on text: a name within reach of a comparison, on one line or the next.
Complaints check_axis_names(const std::string& path, const std::string& text) {
  static const std::string thing =
      R"((?:\b(?:axis|axes|group|groups|stream|streams)(?:\[(?:[^\[\]]|\[[^\]]*\])*\])?(?:\.|->)name\b))";
  static const std::regex compared(
      thing + R"(\s*(?:[=!]=|[<>]=?\s|\.(?:starts_with|ends_with|find|rfind|compare|contains|substr|front)\b))" +
      R"(|[=!]=\s*(?:\w+(?:\.|->))*)" + thing + R"(|&(?:Axis|Group|Stream)::name\b)");
  const std::string code = without_comments_and_literals(text);
  Complaints complaints;
  for (std::sregex_iterator it(code.begin(), code.end(), compared), end; it != end; ++it) {
    const auto line = std::count(code.begin(), code.begin() + it->position(), '\n') + 1;
    complaints.push_back(path + ":" + std::to_string(line) + ": compares a name that is for people");
  }
  return complaints;
}
Complaints check_axis_words(const std::string& path, const std::string& text) {
  static const std::regex word(R"re("(?:tp|cp|dp|ep|dp_outer)[".])re");
  Complaints complaints;
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) {
    const auto line = std::count(text.begin(), text.begin() + it->position(), '\n') + 1;
    complaints.push_back(path + ":" + std::to_string(line) + ": a word for an axis");
  }
  return complaints;
}

template <class Check>
void each_source(const std::vector<std::string>& folders, Check check) {
  int files = 0;
  for (const std::string& folder : folders)
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(FORESHARD_SOURCE) / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp" && extension != ".cu") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      check(fs::relative(entry.path(), FORESHARD_SOURCE).string(), text.str());
      ++files;
    }
  EXPECT_GT(files, 20);
}

}  // namespace

TEST(AxisNames, NobodyComparesThem) {
  each_source({"core", "replay", "strategy", "sim", "exec", "report", "validation", "cli", "gui"},
              [](const std::string& path, const std::string& text) {
                if (path == "core/plan/plan_json_version1.cpp") return;
                for (const std::string& complaint : check_axis_names(path, text)) ADD_FAILURE() << complaint;
              });
}

TEST(AxisNames, WhatReadsPlansHasNoWordForThem) {
  each_source({"core/check", "replay", "sim", "exec/interpreter"}, [](const std::string& path, const std::string& text) {
    for (const std::string& complaint : check_axis_words(path, text)) ADD_FAILURE() << complaint;
  });
}

// The lines that did so are found, printing is not.
TEST(AxisNames, TheRuleCanFail) {
  for (const char* line :
       {"if (axis.name.starts_with(\"tp\")) {", "if (plan.axes[axis.index()].name == name) return true;",
        "const bool tp = name == plan.axes[a].name;", "  if (plan.axes[axis.index()].name.starts_with(\"tp\"))",
        "const auto axis = std::ranges::find(axes, name, &Axis::name);", "if (axis.name\n    != \"role\")",
        "if (plan_.groups[what.group.index()].name == \"tensor\") {",
        "return roles[role.index()].streams[instruction.stream.index()].name == \"tensor\";"})
    EXPECT_EQ(check_axis_names("a.cpp", line).size(), 1u) << line;
  for (const char* line :
       {"text += plan_.axes[a].name;", "axes.rows.push_back({axis.name, text(axis.size)});",
        "if (axis.name.empty()) throw Wrong{};", "if (plan.axes[a].dense == DenseKind::Tensor)", "if (option.name == path)",
        "// axis.name == \"tp\"", "found += \", \" + plan_.axes[p.axis.index()].name + \" + \";"})
    EXPECT_EQ(check_axis_names("a.cpp", line), Complaints{}) << line;
  EXPECT_EQ(check_axis_words("a.cpp", "x == \"tp\" || y == \"dp.2\""),
            (Complaints{"a.cpp:1: a word for an axis", "a.cpp:1: a word for an axis"}));
}

}  // namespace foreshard::layout
