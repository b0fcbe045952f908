// Scores of models with experts beside those of dense ones.
#include "validation/validation.h"

#include <gtest/gtest.h>

#include "validation/validation_text.h"

namespace foreshard::validation_test {
namespace {

ValidatedRow row(double measured, double predicted, bool experts) {
  return {.source = "table",
          .gpu = "H100",
          .framework = "megatron",
          .experts = experts,
          .checks_memory = true,
          .measured = measured,
          .predicted = predicted,
          .sweep = "one"};
}

// Errors of 10 % and 20 % without experts, of 50 % with: nothing of the dense numbers knows of the third row.
TEST(Validation, ModelsWithExpertsHaveCellsAndSumsOfTheirOwn) {
  const std::vector<ValidatedRow> dense = {row(10, 11, false), row(20, 24, false)};
  std::vector<ValidatedRow> all = dense;
  all.push_back(row(10, 15, true));
  const Validation before = validate(dense, {}), after = validate(all, {});
  ASSERT_EQ(after.cells.size(), 2U);
  EXPECT_EQ(after.cells[0].score, before.cells[0].score);
  EXPECT_TRUE(after.cells[1].experts);
  EXPECT_EQ(framework_words(after.cells[1]), "megatron, experts");
  EXPECT_NEAR(after.experts_time.median, 0.5, 1e-12);
  EXPECT_EQ(after.experts_time.n, 1);
  EXPECT_NEAR(after.time.mean_of_cells, 0.15, 1e-12);
  EXPECT_EQ(static_cast<const Score&>(after.time), static_cast<const Score&>(before.time));
  EXPECT_EQ(after.complete_scored, 2);
  EXPECT_EQ(after.verdicts.true_negative, 2);
  EXPECT_EQ(after.sweeps, 0);  // of three rows and more
  EXPECT_NE(validation_text(after).find("models with experts, time: 1 row"), std::string::npos) << validation_text(after);
}

// Ten rows of another source are enough for an interval of the kind that they are of, and of no other.
TEST(Validation, IntervalsComeFromRowsOfTheSameKind) {
  std::vector<ValidatedRow> rows(10, row(10, 11, false));
  for (ValidatedRow& other : rows) other.source = "other";
  rows.push_back(row(10, 12, false));
  rows.push_back(row(10, 12, true));
  const Validation v = validate(rows, {});
  EXPECT_GT(v.scored[10].high, 0);
  EXPECT_EQ(v.scored[11].high, 0);
}

}  // namespace
}  // namespace foreshard::validation_test
