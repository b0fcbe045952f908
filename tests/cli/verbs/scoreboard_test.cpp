// docs/scoreboard.md is what validate prints today.
#include <gtest/gtest.h>

#include "core/json/json.h"
#include "tests/cli/run_line.h"

namespace foreshard::scoreboard_test {
namespace {

TEST(Scoreboard, IsWhatIsPredictedToday) {
  const std::string page = read_file(FORESHARD_SOURCE "/docs/scoreboard.md");
  const std::string begin = "<!-- scoreboard -->\n", end = "<!-- end of scoreboard -->";
  const std::size_t from = page.find(begin) + begin.size(), to = page.find(end);
  ASSERT_LT(from, to);
  const RanLine ran = run_words({"validate", FORESHARD_SOURCE "/data/measured/mlperf.csv", "--markdown", "--per-row"});
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  EXPECT_EQ(page.substr(from, to - from), ran.out) << "scripts/refresh_validation.sh writes the page";
}

}  // namespace
}  // namespace foreshard::scoreboard_test
