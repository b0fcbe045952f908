#include "report/tables/summary_text.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "report/words/text_table.h"
#include "tests/report/summaries.h"

namespace foreshard::summary_text_test {
namespace {

TEST(SummaryText, SaysTheNumbersInOrder) {
  const SummaryHeader header{"gpt3-175b", "dgx-a100-x128", {"tp 8", "pp 4", "1f1b", "bf16"}};
  EXPECT_EQ(summary_text(summaries::typical(4), header, {.unicode = false}),
            R"(gpt3-175b on dgx-a100-x128, 1,024 GPUs
tp 8, pp 4, 1f1b, bf16

  iteration time             41.32 s    tokens/s                    76,132
  model FLOPs              6.2 EFLOP    tokens/s per GPU             74.35
  utilisation (MFU)           43.1 %    hardware use (HFU)          51.7 %

Where the time goes (share of the iteration, mean over GPUs)
  compute                           78.5 %  ###############################
  blocking communication             9.8 %  ####
  bubble                            11.7 %  #####
    warm-up                          5.1 %  ##
    drain                            4.4 %  ##
    dependency                       1.2 %
    exposed communication            0.9 %
    barrier                          0.1 %
  communication: 10.7 % exposed, 14.0 % hidden behind compute

Stages (times per micro-batch, without waiting; weight grads are part of backward)
             forward  backward  weight grads  transfer     bubble  main causes, %
  ---------  -------  --------  ------------  --------  ---------  ----------------------
  stage 0     105 ms    212 ms       71.2 ms   2.13 ms      9.0 %  warm-up 6.0, drain 2.0
  stage 1-2   103 ms    212 ms       71.2 ms   2.13 ms  9.1-9.2 %  warm-up 5.5, drain 2.6
  stage 3     113 ms    212 ms       71.2 ms   2.13 ms      9.3 %  warm-up 5.1, drain 3.2

Memory per GPU (GiB)
             params  grads  optim  activ  scratch  comm   live  bound  arena  total  margin
  ---------  ------  -----  -----  -----  -------  ----  -----  -----  -----  -----  ------
  stage 0      4.00   4.00  24.00   8.00     2.00  0.25  42.25  42.50  43.00  44.50   30.50
  stage 1-3    3.00   3.00  18.00   8.00     2.00  0.25  34.25  34.50  35.00  36.50   38.50
  80.00 GiB per GPU, 5.00 in reserve; fits with 30.50 GiB to spare
  live: peak in use in this run; bound: peak under any timing; arena: what the plan allocates;
  total: with the framework (context, workspaces, communication library); margin: after reserve

Busiest links
  busiest of its kind  links    used
  -------------------  -----  ------  ------------
  node0/nic->leaf        128  41.2 %  ############
  node3/gpu0->switch   1,024  31.0 %  #########

Per million tokens: cost 8.27, 5,210 kJ
)");
}

TEST(SummaryText, SaysWhatTheIntervalIsMadeOf) {
  Summary summary = summaries::typical(2);
  const auto line = [&](const PredictionInterval& interval) {
    summary.prediction_interval = interval;
    const std::string text = summary_text(summary, {"m", "c", {}}, {.unicode = false});
    const std::size_t from = text.find("90 %");
    return from == std::string::npos ? "" : text.substr(from, text.find("\n\n", from) - from);
  };
  const std::string of_runs = "from the errors of 4 runs that the profile learned from";
  EXPECT_EQ(line({.low = {57.34},
                  .high = {76.09},
                  .rows = 166,
                  .basis = "compared with 9 sources of this framework on this GPU "
                           "generation (166 runs)"}),
            "90 % prediction interval   57.3-76.1 s\n    compared with 9 sources of this framework on this GPU generation (166 "
            "runs)");
  EXPECT_EQ(line({.low = {57.34}, .high = {76.09}, .rows = 4, .basis = of_runs, .learned = true}),
            "90 % prediction interval   57.3-76.1 s\n    from the errors of 4 runs that the profile learned from");
  EXPECT_EQ(line({.low = {57.34},
                  .high = {76.09},
                  .rows = 4,
                  .basis = of_runs,
                  .learned = true,
                  .rates_of = {"b200", "gb200"},
                  .rates_spread = 0.062}),
            "90 % prediction interval   57.3-76.1 s\n    from the errors of 4 runs that the profile learned from\n    "
            "matrix products as measured on b200, gb200, not on this GPU; GPUs differ by\n    6.2 %");
  EXPECT_EQ(line({.low = {57.34}, .high = {76.09}, .rows = 4, .basis = of_runs, .learned = true, .rates_spread = 0.062}),
            "90 % prediction interval   57.3-76.1 s\n    from the errors of 4 runs that the profile learned from\n    "
            "matrix products by formula, none measured on a GPU like this; GPUs differ by\n    6.2 %");
}

TEST(SummaryText, ARefusalComesFirstWithWhatWouldHelp) {
  Summary summary = summaries::typical(2);
  summary.iteration_time = {};
  summary.feasible = false;
  summary.infeasible_reason =
      "stage 0 needs 96.20 GiB (arena 90.10, framework 1.30, reserve 4.80) of 80.00 GiB: 16.20 GiB too much";
  summary.would_help = {"--recompute selective"};
  const std::string text = summary_text(summary, {"m", "c", {}}, {.unicode = false});
  EXPECT_TRUE(
      text.starts_with("m on c, 1,024 GPUs\n\nDoes not fit: stage 0 needs 96.20 GiB (arena 90.10, framework 1.30, reserve\n"
                       "4.80) of 80.00 GiB: 16.20 GiB too much\nWhat would help:\n  - --recompute selective\n\nMemory"))
      << text;
  EXPECT_EQ(text.find("iteration time"), std::string::npos);
}

TEST(SummaryText, ManyDifferentRowsLeaveOutTheMiddleButKeepTheTightest) {
  Summary summary = summaries::typical(64);
  for (std::size_t r = 0; r < 64; ++r) summary.memory[r].arena = {static_cast<std::int64_t>(r + 1) << 30};
  summary.memory[40].with_framework = {70LL << 30};
  const std::string text = summary_text(summary, {"m", "c", {}});
  EXPECT_NE(text.find("\n  stage 40 "), std::string::npos);
  EXPECT_EQ(text.find("\n  stage 30 "), std::string::npos);
  EXPECT_NE(text.find("\n  ...\n"), std::string::npos);
}

// Two ranks with two stages each: times per stage, bubbles per rank.
TEST(SummaryText, RanksWithSeveralStagesHaveTheirOwnTable) {
  Summary summary = summaries::typical(4);
  summary.memory.resize(2), summary.bubble.per_stage.resize(2), summary.bubble.by_cause_per_stage.resize(2);
  const std::string text = summary_text(summary, {"m", "c", {}}, {.unicode = false});
  EXPECT_NE(text.find("  stage 1-2   103 ms    212 ms       71.2 ms   2.13 ms\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Pipeline ranks\n"
                      "           bubble  main causes, %\n"
                      "  -------  ------  ----------------------\n"
                      "  stage 0   9.0 %  warm-up 6.0, drain 2.0\n"
                      "  stage 1   9.1 %  warm-up 5.7, drain 2.4\n"),
            std::string::npos)
      << text;
}

TEST(SummaryText, FitsAHundredColumns) {
  std::mt19937 random(3);
  const auto share = [&] { return std::uniform_real_distribution<double>(0, 0.4)(random); };
  for (const int stages : {1, 2, 7, 16, 64, 126}) {
    Summary summary = summaries::typical(stages);
    for (StageMemory& row : summary.memory)
      for (Bytes& bytes : row.peak) bytes = {static_cast<std::int64_t>(share() * 1e12)};
    for (auto& causes : summary.bubble.by_cause_per_stage)
      for (double& cause : causes) cause = share();
    summary.feasible = false;
    summary.infeasible_reason = std::string(30, 'a') + " " + std::string(80, 'b') + " c " + std::string(95, 'd');
    summary.would_help = {summary.infeasible_reason};
    std::istringstream lines(summary_text(summary, {"model", "cluster", std::vector<std::string>(30, "sequence parallel")}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 100) << line;
  }
}

TEST(SummaryText, SmallWords) {
  EXPECT_EQ(range_name("stage 1", "stage 14"), "stage 1-14");
  EXPECT_EQ(range_name("stage 3", "stage 3"), "stage 3");
  EXPECT_EQ(range_name("worker", "server"), "worker .. server");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(999.6), "1,000");
  EXPECT_EQ(with_commas(-4321), "-4,321");
  EXPECT_EQ(with_commas(74.349), "74.35");
  EXPECT_EQ(in_time({0.9996}), "1.00 s");
  EXPECT_EQ(in_time({9999.994}), "9999.99 s");
  EXPECT_EQ(in_time({315689.61}), "315,690 s");
  EXPECT_EQ(in_time({0.00999}), "9.99 ms");
  EXPECT_EQ(in_time({3.2e-6}), "3.20 µs");
  EXPECT_EQ(in_short_time({0.03236}), "32.4 ms");
  EXPECT_EQ(in_short_time({0.00099960}), "1.00 ms");
  EXPECT_EQ(in_short_time({41.3187}), "41.3 s");
  EXPECT_EQ(in_short_time({412e-9}), "412 ns");
  EXPECT_EQ(in_time_range({18.54}, {24.6}), "18.5-24.6 s");
  EXPECT_EQ(in_time_range({0.98}, {1.02}), "980 ms - 1.02 s");
  EXPECT_EQ(count_text(-1734), "-1,734");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(in_flops({2.5e15}), "2.5 PFLOP");
  EXPECT_EQ(bar(0.5, 4, true), "██");
  EXPECT_EQ(bar(0.28125, 4, true), "█▏");  // 9 of 32 eighths
  EXPECT_EQ(width_of("─·é"), 3);
}

}  // namespace
// A terminal has 80 columns; a number does not stand at the end of a line and its unit on the next.
TEST(SummaryText, WrappedWordsKeepNumberAndUnit) {
  EXPECT_EQ(wrapped("optimizer 75.31 GiB, activations", 2, 16), "optimizer\n  75.31 GiB,\n  activations");
  EXPECT_EQ(wrapped("update 4.3 %.", 0, 11), "update\n4.3 %.");
}

}  // namespace foreshard::summary_text_test
