// What lowers, estimates and plays reads tables and rows: ZeRO's number, the names of schedules and the kinds of recomputation are
// compared in strategy/resolve, in tune, in adapters of frameworks and in what a person reads, and nowhere behind.
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

Complaints check_technique_names(const std::string& path, const std::string& text) {
  static const std::string word = R"((?:Schedule|RecomputeKind)::\w+)";
  static const std::regex compared(R"(\bzero\s*(?:[=!]=|[<>]=?)\s*\d|\bcase\s+)" + word + R"(|[=!]=\s*)" + word + "|" + word +
                                   R"(\s*(?:[=!]=|[<>]=?\s)|[<>]=?\s*)" + word);
  const std::string code = without_comments_and_literals(text);
  Complaints complaints;
  for (std::sregex_iterator it(code.begin(), code.end(), compared), end; it != end; ++it) {
    const auto line = std::count(code.begin(), code.begin() + it->position(), '\n') + 1;
    complaints.push_back(path + ":" + std::to_string(line) + ": asks for a technique by name");
  }
  return complaints;
}

}  // namespace

TEST(TechniqueNames, NobodyBehindTheTablesAsksForThem) {
  int files = 0;
  for (const char* folder :
       {"strategy/lower", "strategy/state", "strategy/program", "strategy/estimate", "replay", "sim", "exec"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(FORESHARD_SOURCE) / folder)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      for (const std::string& complaint :
           check_technique_names(fs::relative(entry.path(), FORESHARD_SOURCE).string(), text.str()))
        ADD_FAILURE() << complaint;
      ++files;
    }
  EXPECT_GT(files, 100);
}

TEST(TechniqueNames, TheRuleCanFail) {
  const auto count = [](const char* text) { return check_technique_names("a.cpp", text).size(); };
  EXPECT_EQ(count("if (lowering.zero >= 2) f();"), 1u);
  EXPECT_EQ(count("if (point.zero == 1 || point.zero == 2) f();"), 2u);
  EXPECT_EQ(count("if (*s.schedule == Schedule::ZeroBubbleV) f();"), 1u);
  EXPECT_EQ(count("switch (kind) { case RecomputeKind::Full: return; }"), 1u);
  EXPECT_EQ(count("if (recompute.kind > RecomputeKind::Modules) f();"), 1u);
  EXPECT_EQ(count("s.zero = 1; s.schedule = Schedule::OneFOneB; std::vector<Schedule> all; // zero == 1"), 0u);
}

}  // namespace foreshard::layout
