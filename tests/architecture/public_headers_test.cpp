// Every header that docs/architecture.md lists for others is included by a test or by what tests share, but for those that have nothing to
// test.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/architecture/layout.h"

namespace foreshard::layout {
namespace {

namespace fs = std::filesystem;
const fs::path kSource = FORESHARD_SOURCE;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Listed headers without a test of their own, and why.
const std::map<std::string, std::string>& exceptions() {
  static const std::map<std::string, std::string> list = {
      {"core/result/trace.h", "values without functions"},
      {"exec/device/operand.h", "values without functions"},
      {"exec/device/device_measures.h", "an interface: the tests of calibrate run its implementations"},
      {"exec/interpreter/rank_devices.h", "an interface: the tests of ranks on GPUs run its implementations"},
      {"strategy/resolve/value_move.h", "values without functions"},
      {"replay/clock.h", "an interface: tests/sim/clock_test.cpp compares its implementations"},
  };
  return list;
}

// "core/op/op.h" of every row that lists its headers; rows with "all" list none.
std::set<std::string> listed_headers(const Rules& rules) {
  std::set<std::string> headers;
  for (const auto& [place, names] : rules.read_by_others)
    for (const std::string& name : names)
      if (!names.contains("all")) headers.insert(place + "/" + name + ".h");
  return headers;
}

std::set<std::string> includes_of(const std::string& text) {
  static const std::string begin = "#include \"";
  std::set<std::string> headers;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(begin)) headers.insert(line.substr(begin.size(), line.find('"', begin.size()) - begin.size()));
  return headers;
}

Complaints check_tested(const std::set<std::string>& listed, const std::set<std::string>& included,
                        const std::map<std::string, std::string>& excepted) {
  Complaints complaints;
  for (const std::string& header : listed)
    if (!included.contains(header) && !excepted.contains(header))
      complaints.push_back(header + " is read by others, and no test includes it");
  for (const auto& [header, why] : excepted) {
    if (!listed.contains(header)) complaints.push_back(header + " is excepted, and no row lists it");
    if (included.contains(header)) complaints.push_back(header + " is excepted, and a test includes it");
  }
  return complaints;
}

}  // namespace

TEST(PublicHeaders, EachHasATest) {
  const std::set<std::string> listed = listed_headers(parse_rules(text_of(kSource / "docs/architecture.md")));
  EXPECT_GT(listed.size(), 100U);
  std::set<std::string> included;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kSource / "tests"))
    if (entry.is_regular_file()) included.merge(includes_of(text_of(entry.path())));
  for (const std::string& complaint : check_tested(listed, included, exceptions())) ADD_FAILURE() << complaint;
}

TEST(PublicHeaders, TheRuleCanFail) {
  const Rules rules = parse_rules(
      "| folder | holds | may include | read by others |\n|---|---|---|---|\n| `core/op/` | x | – | op codec |\n"
      "| `core/base/` | x | – | all |\n");
  EXPECT_EQ(listed_headers(rules), (std::set<std::string>{"core/op/op.h", "core/op/codec.h"}));
  const std::set<std::string> included = includes_of("#include \"core/op/op.h\"\n#include <vector>\n");
  EXPECT_EQ(check_tested(listed_headers(rules), included, {}),
            (Complaints{"core/op/codec.h is read by others, and no test includes it"}));
  EXPECT_EQ(check_tested(listed_headers(rules), included, {{"core/op/codec.h", "values"}}), Complaints{});
  EXPECT_EQ(check_tested(listed_headers(rules), included, {{"core/op/codec.h", "values"}, {"core/op/op.h", "values"}}),
            (Complaints{"core/op/op.h is excepted, and a test includes it"}));
  EXPECT_EQ(check_tested({}, {}, {{"core/op/old.h", "values"}}),
            (Complaints{"core/op/old.h is excepted, and no row lists it"}));
}

}  // namespace foreshard::layout
