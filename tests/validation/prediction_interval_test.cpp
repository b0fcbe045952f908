// Errors of measured runs by source, and the intervals made from them.
#include "validation/prediction_interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/base/error.h"
#include "validation/shipped_interval.h"

namespace foreshard::prediction_interval_test {
namespace {

ValidatedRow row(double measured, double predicted, bool rate = false) {
  return {.source = "paper",
          .framework = "megatron",
          .quantity = rate ? "tflops_per_gpu" : "iter_time_s",
          .architecture = "ampere",
          .larger_is_better = rate,
          .measured = measured,
          .predicted = predicted,
          .shipped = {.tokens = 6000}};
}

ComparedRuns runs(const std::string& source, const std::string& framework, std::vector<double> ratios, double tokens = 6000) {
  ComparedRuns made{
      .source = source, .framework = framework, .architecture = "ampere", .rows = static_cast<int>(ratios.size())};
  for (const double ratio : ratios) made.errors.push_back({ratio, tokens});
  return made;
}

// Sources drawn with spread `between` and `inside`, some with a framework of their own, some sharing one.
std::vector<ComparedRuns> drawn(unsigned seed, double between, double inside) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<ComparedRuns> all;
  for (int s = 0; s < 30; ++s) {
    const double middle = between * normal(random);
    std::vector<double> ratios;
    for (int i = 0; i < (s % 3 == 0 ? 200 : 12); ++i) ratios.push_back(middle + inside * normal(random));
    all.push_back(runs("s" + std::to_string(s), s % 2 == 0 ? "shared" : "own" + std::to_string(s), ratios));
  }
  return all;
}

double width(const Spread& spread) { return std::log(spread.high / spread.low); }

}  // namespace

// A throughput half of the predicted one is a time of twice the predicted one. Memory: the peak only. Rows that ran out do not count.
TEST(ComparedRuns, AreTheErrorsOfASource) {
  std::vector<ValidatedRow> rows = {row(2, 1), row(5, 10, true), row(1, 1), row(3, 1), row(9, 3)};
  rows[2].ran_out = true;
  rows[3].memory = true, rows[3].quantity = "static_mem_gib";
  rows[4].memory = true, rows[4].quantity = "peak_mem_gib", rows[4].experts = true;
  const std::vector<ComparedRuns> all = compared_runs(rows, {});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].rows, 2);
  EXPECT_EQ(all[0].architecture, "ampere");
  for (const ComparedRuns::Error& error : all[0].errors) EXPECT_NEAR(error.log_ratio, std::log(2), 1e-12);
  EXPECT_EQ(all[0].errors[0].tokens, 6000);
  EXPECT_TRUE(all[1].memory);
  EXPECT_EQ(all[1].architecture, "");
  EXPECT_EQ(all[1].kind, ModelKind::Dense);
  EXPECT_NEAR(all[1].errors.at(0).log_ratio, std::log(3), 1e-12);
  EXPECT_EQ(parse_compared(to_json(all), "r.json"), all);
}

// Without the source the constants predict 5 % more: measured / predicted is less by as much.
TEST(ComparedRuns, WithConstantsThatKnowNothingOfTheSource) {
  const SourceNotes notes = parse_source_notes(R"({"what": "", "without": {"paper": 0.05}})", "sources.json");
  const ComparedRuns plain = compared_runs({row(2, 1)}, {}).at(0), left_out = compared_runs({row(2, 1)}, notes).at(0);
  EXPECT_NEAR(left_out.errors.at(0).log_ratio, plain.errors.at(0).log_ratio - 0.05, 1e-12);
  EXPECT_THROW(parse_source_notes(R"({"what": ""})", "sources.json"), Error);
  EXPECT_THROW(parse_source_notes(R"({"without": {}, "other": 1})", "sources.json"), Error);
}

TEST(ComparedRuns, OfManyRowsQuantilesAreKept) {
  std::vector<ValidatedRow> rows;
  for (int i = 0; i < 190; ++i) rows.push_back(row(1 + 0.001 * i, 1));
  const ComparedRuns all = compared_runs(rows, {}).at(0);
  EXPECT_EQ(all.rows, 190);
  ASSERT_EQ(all.errors.size(), 19U);
  EXPECT_NEAR(all.errors[9].log_ratio, std::log(1.095), 1e-9);
  EXPECT_THROW(parse_compared(R"({"runs": [{"rows": 0}]})", "r.json"), Error);
  EXPECT_THROW(parse_compared(R"({"cells": []})", "r.json"), Error);
}

// Every source left out in turn: nine of ten rows are inside, sources counted alike, whatever the spreads.
TEST(Comparisons, KeepTheirWordOnSourcesThatAreNew) {
  for (const auto& [between, inside] : {std::pair(0.1, 0.05), {0.3, 0.02}, {0.02, 0.1}}) {
    double coverage = 0;
    int sources = 0;
    for (unsigned seed = 0; seed < 4; ++seed) {
      const std::vector<ComparedRuns> all = drawn(seed, between, inside);
      const Comparisons comparisons(all);
      for (const ComparedRuns& source : all) {
        const Spread spread =
            comparisons.without(source.source).times({.framework = source.framework, .architecture = "ampere", .tokens = 6000});
        const auto held = std::ranges::count_if(source.errors, [&](const ComparedRuns::Error& error) {
          return std::exp(error.log_ratio) >= spread.low && std::exp(error.log_ratio) <= spread.high;
        });
        coverage += static_cast<double>(held) / static_cast<double>(source.errors.size()), ++sources;
      }
    }
    EXPECT_GT(coverage / sources, 0.85) << between << " " << inside;
    EXPECT_LT(coverage / sources, 0.97) << between << " " << inside;
  }
}

// Sources of one framework that agree among each other, others that do not: the interval for that framework is narrower, and around them.
TEST(Comparisons, AFrameworkWhoseSourcesAgreeIsPredictedCloser) {
  std::vector<ComparedRuns> all = drawn(1, 0.25, 0.03);
  for (ComparedRuns& each : all) each.framework = "f" + each.source;
  for (int i = 0; i < 4; ++i) all.push_back(runs("agrees" + std::to_string(i), "megatron", {0.09, 0.1, 0.1, 0.11, 0.1}));
  const Comparisons comparisons(all);
  const Spread known = comparisons.times({.framework = "megatron", .architecture = "ampere", .tokens = 6000});
  const Spread unknown = comparisons.times({.framework = "else", .architecture = "ampere", .tokens = 6000});
  EXPECT_LT(width(known), 0.5 * width(unknown));
  EXPECT_LT(known.low, std::exp(0.1));
  EXPECT_GT(known.high, std::exp(0.1));
  EXPECT_EQ(known.basis, Spread::Basis::ThisGpu);
  EXPECT_EQ(known.sources, 4);
  EXPECT_EQ(known.rows, 20);
  EXPECT_EQ(unknown.basis, Spread::Basis::NoRuns);
  EXPECT_EQ(words_of(known, "ampere"), "compared with 4 sources of this framework on this GPU generation (20 runs)");
  const std::string words = words_of(unknown, "ampere");
  EXPECT_EQ(words.find("no run of this framework was ever compared: such came out "), 0U) << words;
  const Spread elsewhere = comparisons.times({.framework = "megatron", .architecture = "cdna3", .tokens = 6000});
  EXPECT_EQ(elsewhere.basis, Spread::Basis::OtherGpus);
  EXPECT_NE(words_of(elsewhere, "cdna3").find("; no run on a GPU of generation cdna3 was ever compared"), std::string::npos);
  EXPECT_GT(width(elsewhere), width(known));
}

// A source whose rows are there twenty times, far off, weighs as much as once.
TEST(Comparisons, RowsOfOneSourceDoNotOutvoteOthers) {
  std::vector<ComparedRuns> all = drawn(2, 0.1, 0.05);
  all.push_back(runs("far off", "else", {0.55, 0.6, 0.62, 0.65, 0.7}));
  std::vector<ComparedRuns> more = all;
  const std::vector<ComparedRuns::Error> once = more.back().errors;
  for (int times = 1; times < 20; ++times) more.back().errors.insert(more.back().errors.end(), once.begin(), once.end());
  const PredictedRun run{.framework = "shared", .architecture = "ampere", .tokens = 6000};
  EXPECT_NEAR(Comparisons(all).times(run).high, Comparisons(more).times(run).high, 0.02);
}

TEST(Comparisons, ShortAndLongMicroBatchesAreLessCertain) {
  const Comparisons comparisons(drawn(3, 0.1, 0.05));
  const auto at = [&](double tokens) {
    return width(comparisons.times({.framework = "new", .architecture = "ampere", .tokens = tokens}));
  };
  EXPECT_NEAR(at(512) / at(6000), std::pow(6000 / 512.0, 0.3), 1e-9);
  EXPECT_NEAR(at(12'000) / at(6000), std::pow(6000 / 12'000.0, 0.3), 1e-9);
  EXPECT_NEAR(at(120'000) / at(6000), std::pow(120'000 / 60'000.0, 0.3), 1e-9);
  EXPECT_NEAR(at(1e9) / at(6000), 3, 1e-9);
  EXPECT_NEAR(at(1) / at(6000), 3, 1e-9);
  EXPECT_DOUBLE_EQ(at(0), at(6000));  // unknown
}

// Memory has sources of its own, whatever the GPU; a framework without them, and nothing at all.
TEST(Comparisons, MemoryHasItsOwnSources) {
  std::vector<ComparedRuns> all = drawn(4, 0.1, 0.05);
  EXPECT_EQ(memory_spread(Comparisons(all), "shared", false).basis, Spread::Basis::Nothing);
  EXPECT_EQ(memory_spread(Comparisons({}), "shared", false), Spread{});
  for (ComparedRuns& each : all) each.memory = true, each.architecture = "";
  EXPECT_EQ(memory_spread(Comparisons(all), "shared", false).basis, Spread::Basis::ThisGpu);
  EXPECT_EQ(Comparisons(all).times({.framework = "shared"}).basis, Spread::Basis::Nothing);
}

// A variant of a preset without runs of its own is compared with those of the preset.
TEST(Comparisons, VariantsOfAFrameworkCountAsIt) {
  EXPECT_EQ(compared_framework(shipped_comparisons(), "megatron-bridge-current"), "megatron-bridge");
  EXPECT_EQ(compared_framework(shipped_comparisons(), "megatron-bridge"), "megatron-bridge");
  EXPECT_EQ(compared_framework(shipped_comparisons(), "unknown"), "unknown");
  EXPECT_EQ(compared_framework(shipped_comparisons(), "foreshard"), "foreshard");
}

// Measured 0.9 to 1.25 of what is predicted: from 0.8 of the device on it may not fit, up to 1 / 0.9 of it may.
TEST(Comparisons, CloseToTheLimit) {
  const Spread errors = {.low = 0.9, .high = 1.25};
  EXPECT_FALSE(is_close(0.79, errors));
  EXPECT_TRUE(is_close(0.81, errors));
  EXPECT_TRUE(is_close(1, errors));
  EXPECT_TRUE(is_close(1.11, errors));
  EXPECT_FALSE(is_close(1.12, errors));
  EXPECT_FALSE(is_close(0.999, {}));
  EXPECT_FALSE(is_close(0.999, {.low = 0.8, .high = 0.95}));  // never more than predicted
}

// Width, and twenty times the distance outside.
TEST(IntervalScore, CountsWidthAndMisses) {
  EXPECT_DOUBLE_EQ(interval_score(1, 2, 1.5), 1);
  EXPECT_DOUBLE_EQ(interval_score(1, 2, 2.5), 11);
  EXPECT_DOUBLE_EQ(interval_score(1, 2, 0), 21);
}

}  // namespace foreshard::prediction_interval_test
