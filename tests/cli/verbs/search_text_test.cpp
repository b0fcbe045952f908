// What `search` says below its table, of results made by hand.
#include <gtest/gtest.h>

#include "cli/parts/search_output.h"
#include "core/cluster_file/cluster_file.h"
#include "tests/cli/run_line.h"

namespace foreshard::search_text_test {

static bool has(const std::string& text, const std::string& part) { return on_one_line(text).find(part) != std::string::npos; }

// tp 2 takes 1.41 s, of which 1.31 s compute; a second one with tp 4 as much.
static SearchResult two_alike() {
  Candidate first;
  first.point.tp = 2, first.point.dp = 4;
  first.estimate.time = {1.41}, first.estimate.compute = {1.31}, first.score = 1.41, first.screened.time = 1.41;
  first.estimate.margin = {3LL << 30};
  Candidate second = first;
  second.point.tp = 4, second.point.dp = 2;
  return {.ranked = {first, second}};
}

static std::string said(const SearchResult& result) {
  const Job job{.model = load_model("gpt2-124m"), .cluster = load_cluster("dgx-a100")};
  return search_text(result, job, {}, 10);
}

TEST(SearchText, ARunnerUpThatIsAsFastLosesNowhere) {
  SearchResult result = two_alike();
  EXPECT_TRUE(has(said(result), "Runner-up, 0.00 % slower (less than the noise): tp 4, pp 1, dp 2")) << said(result);
  EXPECT_FALSE(has(said(result), "against"));
  Candidate& second = result.ranked[1];
  second.estimate.time = {1.51}, second.estimate.compute = {1.41}, second.score = 1.51;
  EXPECT_TRUE(has(said(result), "Runner-up, 7.09 % slower (most of it in compute, 1.41 s against 1.31 s): tp 4"))
      << said(result);
  second.estimate.compute = {1.91};  // half a second more of this, and less of something else: no reason for 0.1 s
  EXPECT_FALSE(has(said(result), "against")) << said(result);
}

TEST(SearchText, NamesWhatMemoryRulesOut) {
  SearchResult result = two_alike();
  EXPECT_TRUE(has(said(result), "Memory rules out nothing faster.")) << said(result);
  result.without_memory_limit = RuledOut{.score = 1.128, .point = {.tp = 1, .dp = 8, .micro_batch = 8}};
  EXPECT_TRUE(
      has(said(result), "Limiting constraint: memory. With enough memory, tp 1, pp 1, dp 8, micro-batch 8 would be 20.0 %"))
      << said(result);
}

TEST(SearchText, TheLegendExplainsTheMarksThatAreThere) {
  SearchResult result = two_alike();
  EXPECT_FALSE(has(said(result), "zero +"));
  result.ranked[0].point.zero = 2, result.ranked[0].point.zero_group = 8, result.ranked[0].point.overlap_parameters = true;
  const std::string text = said(result);
  EXPECT_TRUE(has(text, "  2:8+  ")) << text;
  EXPECT_TRUE(has(text, "zero +: parameter"));
  EXPECT_TRUE(has(text, "2:8: ZeRO-2 in groups of 8 GPUs")) << text;
  EXPECT_FALSE(has(text, "1f1b")) << "one stage has no schedule";
}

TEST(SearchText, SaysWhatASimpleStrategyGivesUp) {
  SearchResult result = two_alike();
  result.ranked[0].less_simple =
      Candidate::LessSimple{.gain = 0.0019, .strategy = {.pipeline = {.layer_split = "5x2,6x9,5,3,2,5,1"}}};
  EXPECT_TRUE(has(said(result), "A less simple variant is 0.19 % better (--layer-split 5x2,6x9,5,3,2,5,1)")) << said(result);
}

}  // namespace foreshard::search_text_test
