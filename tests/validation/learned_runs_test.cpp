// Learning from a table of runs: what is learned and what is left out.
#include "validation/learned_runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "validation/learning.h"
#include "validation/score_rows.h"

namespace foreshard::learned_runs_test {
namespace {

const std::string kTable = std::string(FORESHARD_SOURCE) + "/data/measured/vtrain_single.csv";

// The table's runs of one model with 24 layers and one with 16, tp 1 and 2, micro-batches of 1: 18 sweeps at least. What they measured is
// told by `measured` of what is predicted.
std::vector<MeasuredRow> some_rows() {
  std::vector<MeasuredRow> rows;
  for (const MeasuredRow& row : load_measured(kTable))
    if (row.text("hidden") == "1024" && row.text("micro_batch") == "1" &&
        (row.text("layers") == "16" || row.text("layers") == "24") && row.number("tp") <= 2 && row.number("pp") <= 2)
      rows.push_back(row);
  return rows;
}

struct Table {
  Predictor predictor = {};
  std::vector<MeasuredRow> rows = some_rows();
  std::vector<Asked> asked = {};
  std::vector<RunRow> runs = {};
  Table() : asked(predict_all(predictor, rows)), runs(runs_of(asked)) {}
};

// One row meets a bug of ours, one has a cell that cannot be read: each is left out with its reason, and the third is predicted. Of equal
// rows, which share one evaluation, neither poisons the other.
TEST(LearnedRuns, ABugIsTheMatterOfItsRow) {
  Predictor predictor;
  std::vector<MeasuredRow> rows = some_rows();
  rows.resize(1);
  rows.resize(4, rows[0]);
  rows[1].cells["tp"] = "two";
  const std::vector<Asked> asked = predict_all(predictor, rows, [&](const MeasuredRow& row) {
    if (&row == &rows[0]) throw Bug("one is two is false (here.cpp:1)");
    return measured_case(row);
  });
  EXPECT_EQ(std::get<SkipReason>(asked[0].question), SkipReason::Bug);
  EXPECT_EQ(asked[0].problem, "one is two is false (here.cpp:1)");
  EXPECT_EQ(std::get<SkipReason>(asked[1].question), SkipReason::BadCell);
  EXPECT_NE(asked[1].problem.find("tp: found \"two\", expected a whole number from 1 to 4,096"), std::string::npos)
      << asked[1].problem;
  for (const std::size_t i : {2U, 3U}) EXPECT_GT(asked[i].prediction.value, 0) << i;
  const ScoredRows scored = score_rows(asked, Comparisons({}));
  EXPECT_EQ(scored.validation.scored.size(), 2U);
  ASSERT_EQ(scored.validation.skipped.size(), 2U);
  EXPECT_EQ(scored.validation.skipped[0].reason, "bug");
  EXPECT_EQ(scored.validation.skipped[0].explanation, asked[0].problem);
}

// What would hit every other row, too, ends the whole.
TEST(LearnedRuns, NoMemoryIsTheMatterOfAll) {
  Predictor predictor;
  const std::vector<MeasuredRow> rows = some_rows();
  const auto none = [](const MeasuredRow&) -> std::variant<MeasuredCase, SkipReason> { throw std::bad_alloc(); };
  EXPECT_THROW(predict_all(predictor, rows, none), std::bad_alloc);
}

// A machine that takes 1.3 times as long as predicted for everything: said by other sweeps and by the other model alike.
TEST(LearnedRuns, AMachineThatIsSlowerThroughout) {
  Table table;
  ASSERT_GT(table.runs.size(), 20U);
  for (RunRow& run : table.runs) run.measured = 1.3 * run.predicted;
  for (const auto key : {&RunRow::sweep, &RunRow::model})
    for (std::size_t i = 0; const LearnedPrediction& out : predict_left_out(table.predictor, table.asked, table.runs, key)) {
      EXPECT_TRUE(out.learned);
      EXPECT_NEAR(out.predicted / table.runs[i].measured, 1, 0.02);
      EXPECT_LE(out.low, out.predicted);
      EXPECT_GE(out.high, out.predicted);
      ++i;
    }
}

// What is measured in the rows that are left out changes nothing about their predictions.
TEST(LearnedRuns, RowsThatAreLeftOutAreNotSeen) {
  Table table;
  const std::string out = table.runs.front().sweep;
  const auto before = predict_left_out(table.predictor, table.asked, table.runs, &RunRow::sweep);
  for (RunRow& run : table.runs)
    if (run.sweep == out) run.measured *= 3;
  Predictor fresh;
  const auto after = predict_left_out(fresh, table.asked, table.runs, &RunRow::sweep);
  int same = 0, moved = 0;
  for (std::size_t i = 0; i < table.runs.size(); ++i) {
    const bool is_out = table.runs[i].sweep == out, equal = after[i].predicted == before[i].predicted;
    EXPECT_TRUE(equal || !is_out);
    same += is_out ? 1 : 0, moved += equal ? 0 : 1;
  }
  EXPECT_GT(same, 0);
  EXPECT_GT(moved, 0);  // they do learn from it
}

// Rows of one run, whatever they measured, are in one sweep, and count once.
TEST(LearnedRuns, ARunWithTwoQuantitiesIsOneRun) {
  const std::string path = std::string(FORESHARD_SOURCE) + "/data/measured/korthikanti2022.csv";
  std::vector<MeasuredRow> rows;
  for (const MeasuredRow& row : load_measured(path))
    if (row.text("row_id").starts_with("kor-22B-") && !row.mentions("measured_quantity", "layer")) rows.push_back(row);
  Predictor predictor;
  const std::vector<Asked> asked = predict_all(predictor, rows);
  const std::vector<RunRow> runs = runs_of(asked);
  std::map<std::string, std::set<std::string>> sweeps;
  std::set<std::string> names;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < runs.size(); ++i)
    sweeps[runs[i].run].insert(runs[i].sweep), names.insert(runs[i].run), all.push_back(i);
  EXPECT_LT(names.size(), runs.size());
  for (const auto& [run, of] : sweeps) EXPECT_EQ(of.size(), 1U) << run;
  EXPECT_EQ(learn_from(runs, all).runs, static_cast<int>(names.size()));
}

}  // namespace
}  // namespace foreshard::learned_runs_test
