// What search makes of stages with degrees of their own.
#include "strategy/search/search_staged.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/cluster_file/cluster_file.h"
#include "strategy/tune/hybrid_stages.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"

namespace foreshard::search_staged_test {

namespace {

SearchOptions of_batch(std::int64_t batch, std::int64_t seq = 0) {
  SearchOptions options;
  options.base.batch.global = batch, options.base.batch.seq = seq;
  options.threads = 2, options.refine = 8;
  return options;
}

SearchResult found(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  auto answer = search(model, cluster, options);
  EXPECT_TRUE(std::holds_alternative<SearchResult>(answer)) << std::get<Infeasible>(answer).reason;
  return std::get<SearchResult>(std::move(answer));
}

int staged(const SearchResult& result) {
  return static_cast<int>(
      std::ranges::count_if(result.ranked, [](const Candidate& each) { return !each.strategy.stages.empty(); }));
}

}  // namespace

// VGG-16 on 64 GPUs behind 25 Gb/s: every replica of the classifier sums 124 million parameters, 248 MB each way over 3.1 GB/s and back, more
// than 150 ms; a few GPUs of its own sum them inside a node.
TEST(SearchStages, ConvolutionsAndClassifierGetTheirOwn) {
  SearchOptions options = of_batch(512);
  options.base.batch.micro = 8, options.fixed = {"micro_batch", "overlap", "zero"};
  const Model model = load_model("vgg-16");
  const Cluster cluster = load_cluster("eth25-a100-x8");
  const SearchResult with = found(model, cluster, options);
  const Candidate& best = with.ranked.front();
  ASSERT_GE(best.strategy.stages.size(), 2u);
  EXPECT_LT(best.strategy.stages.back().dp, best.strategy.stages.front().dp);
  EXPECT_LE(best.gpus(), 64);
  EXPECT_LE(best.gpus(), 64);
  EXPECT_EQ(refine(std::get<Lowered>(tuned_plan(model, cluster, best.strategy)), cluster), best.estimate)
      << "what it says is all";
  options.stages = false;
  const SearchResult without = found(model, cluster, options);
  EXPECT_EQ(staged(without), 0);
  EXPECT_GT(without.ranked.front().score, 0.14);
  EXPECT_LT(best.score, 0.3 * without.ranked.front().score);
}

// The winner is never slower than without, and the bound loses nothing.
TEST(SearchStages, NeverSlowerAndTheSameUnpruned) {
  int won = 0;
  for (const auto& [name, cluster_name, batch] : some_of<std::tuple<const char*, const char*, int>>(
           {{"vgg-16", "pcie-a100-8", 24}, {"gpt2-124m", "eth25-a100", 16}, {"gpt2-124m", "dgx-a100", 16}}, 1)) {
    SearchOptions options = of_batch(batch, std::string(name) == "vgg-16" ? 0 : 512);
    options.fixed = {"overlap", "recompute", "placement"};
    const Model model = load_model(name);
    const Cluster cluster = load_cluster(cluster_name);
    const SearchResult with = found(model, cluster, options);
    won += !with.ranked.front().strategy.stages.empty();
    options.prune = false;
    EXPECT_EQ(found(model, cluster, options).ranked.front().strategy, with.ranked.front().strategy) << name << cluster_name;
    options.prune = true, options.stages = false;
    EXPECT_LE(with.ranked.front().score, found(model, cluster, options).ranked.front().score) << name << cluster_name;
  }
  EXPECT_GE(won, 1);
}

// No strategy of two stages or more is faster than the bound; one in a thousand, for what a stage of several layers saves against its layers
// alone.
TEST(SearchStages, NoStagesAreFasterThanTheBound) {
  std::mt19937 random(7);
  const Model model = load_model("gpt2-355m");
  double nearest = 1e300;
  for (const char* name : {"dgx-a100", "eth25-a100"}) {
    const Cluster cluster = load_cluster(name);
    Strategy strategy{.batch = {.micro = 1, .global = 24, .seq = 512}};
    const double bound = staged_bound(strategy, hybrid_job(model, cluster, strategy, 0));
    for (int round = 0; round < 12; ++round) {
      std::vector<StageDegrees> stages;
      const int tp = std::string(name) == "dgx-a100" && random() % 3 == 0 ? 2 : 1;
      for (int layers = 24, gpus = 8; layers > 0;) {
        const int dp = std::vector{1, 2, 3, 4}[random() % 4], count = std::min<int>(layers, 4 + random() % 16);
        if (gpus < dp * tp) break;
        stages.push_back({count, dp, tp}), layers -= count, gpus -= dp * tp;
        if (gpus < 2 * tp || layers == 0) stages.back().layers += layers, layers = 0;
      }
      int sum = 0;
      for (const StageDegrees& stage : stages) sum += stage.layers;
      if (sum != 24 || stages.size() < 2) continue;
      const auto answer = tuned_plan(model, cluster, with_stages(strategy, stages), {.ignore_memory = true, .check = false});
      ASSERT_TRUE(std::holds_alternative<Lowered>(answer)) << to_text(stages);
      const double seconds = refine(std::get<Lowered>(answer), cluster).time.value;
      EXPECT_GE(seconds, bound * 0.999) << to_text(stages);
      nearest = std::min(nearest, seconds / bound);
    }
  }
  EXPECT_LT(nearest, 1.6) << "a bound that says something";
}

// What is fixed, and what a framework cannot run, rules them out or holds for them.
TEST(SearchStages, FixedOptionsHold) {
  const Cluster cluster = load_cluster("eth25-a100-x8");
  const auto open = [&](const char* path, const auto& set) {
    SearchOptions options = of_batch(64);
    options.fixed = {path};
    set(options.base);
    return tries_stages(cluster, options);
  };
  EXPECT_TRUE(open("tp", [](Strategy& s) { s.tp = 2; }));
  EXPECT_TRUE(open("zero", [](Strategy& s) { s.zero.stage = 0; }));
  EXPECT_TRUE(open("schedule", [](Strategy& s) { s.pipeline.schedule = Schedule::GPipe; }));
  EXPECT_FALSE(open("pp", [](Strategy& s) { s.pp = 2; }));
  EXPECT_FALSE(open("dp", [](Strategy& s) { s.dp = 2; }));
  EXPECT_FALSE(open("cp", [](Strategy& s) { s.cp = 2; }));
  EXPECT_FALSE(open("zero", [](Strategy& s) { s.zero.stage = 1; }));
  EXPECT_FALSE(open("virtual_stages", [](Strategy& s) { s.virtual_stages = 2; }));
  EXPECT_FALSE(open("sequence_parallel", [](Strategy& s) { s.sequence_parallel = true; }));
  EXPECT_FALSE(open("schedule", [](Strategy& s) { s.pipeline.schedule = Schedule::Interleaved; }));
  EXPECT_FALSE(open("tp", [](Strategy& s) { s.tp = 16; }));
  EXPECT_FALSE(open("overlap", [](Strategy& s) { s.framework = "megatron"; }));
  EXPECT_FALSE(open("overlap", [](Strategy& s) { s.pipeline.layer_split = "4,8"; }));
  EXPECT_FALSE(open("overlap", [](Strategy& s) { s.optimizer.clip_norm = 1; }));

  SearchOptions options = of_batch(64);
  options.base.pipeline.schedule = Schedule::GPipe, options.base.batch.micro = 2,
  options.base.communication.overlap = Overlap{.p2p = false};
  options.fixed = {"schedule", "micro_batch", "overlap"};
  const SearchResult result = found(load_model("vgg-16"), cluster, options);
  EXPECT_GE(staged(result), 1);
  for (const Candidate& each : result.ranked) {
    EXPECT_EQ(each.strategy.batch.micro, 2);
    if (!each.strategy.stages.empty()) {
      EXPECT_EQ(each.strategy.pipeline.schedule, Schedule::GPipe);
      EXPECT_EQ(each.strategy.communication.overlap, options.base.communication.overlap);
    }
  }
}

// Steps double and join stages: a degree that is fixed or at most so much holds for what they make, too.
TEST(SearchStages, StepsKeepTheTensorDegreeThatIsFixed) {
  const Cluster cluster = load_cluster("workstation-rtx4090-x2");
  for (const bool fixed : {true, false}) {
    SearchOptions options = of_batch(16, 256);
    options.fixed = {"micro_batch", "recompute", "placement"};
    if (fixed)
      options.base.tp = 2, options.fixed.push_back("tp");
    else
      options.max_tp = 1;
    for (const Candidate& each : found(load_model("gpt2-355m"), cluster, options).ranked)
      for (const StageDegrees& stage : each.strategy.stages)
        EXPECT_EQ(stage.tp, fixed ? 2 : 1) << to_text(each.strategy.stages);
  }
}

}  // namespace foreshard::search_staged_test
