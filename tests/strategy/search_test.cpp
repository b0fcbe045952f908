// search against the slow obvious answer: refine every strategy of a small space.
#include "strategy/search.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "core/json_edit.h"

namespace foreshard {

namespace {

// The workstation with fewer GPUs.
Cluster workstation(int gpus) {
  const std::string path = cluster_file("workstation-rtx4090").path;
  return parse_cluster(with_json_value(read_file(path), "gpus_per_node", std::to_string(gpus), "test"), path);
}

Model layers(const char* name, int count) {
  Model model = load_model(name);
  std::get<Transformer>(model.shape).layers = count;
  return model;
}

SearchOptions options(std::int64_t batch, std::int64_t seq) {
  SearchOptions options;
  options.base.global_batch = batch;
  options.base.seq = seq;
  options.threads = 1;
  return options;
}

// Every strategy, written as plain loops over everything; lower says what cannot be.
double enumerate(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  const int gpus = gpu_count(cluster), depth = std::get<Transformer>(model.shape).layers;
  double best = 1e300;
  for (int tp = 1; tp <= gpus; ++tp)
    for (int pp = 1; tp * pp <= gpus; ++pp)
      for (int v = 1; v <= depth; ++v)
        for (std::int64_t mb = 1; mb <= options.base.global_batch; ++mb)
          for (int bits = 0; bits < 3 * 4 * 2 * 2 * 2; ++bits) {
            if (gpus % (tp * pp) != 0 || depth % (pp * v) != 0 || (v > 1 && pp == 1)) continue;
            Point point{.tp = tp, .pp = pp, .virtual_stages = v, .dp = gpus / tp / pp, .micro_batch = mb};
            point.recompute = static_cast<RecomputeKind>(bits % 3);
            point.zero = static_cast<std::int8_t>(bits / 3 % 4);
            point.overlap_parameters = bits / 12 % 2 == 1;
            point.sequence_parallel = bits / 24 % 2 == 1;
            point.schedule = v > 1 ? Schedule::Interleaved : bits / 48 == 1 ? Schedule::GPipe : Schedule::OneFOneB;
            if (options.base.global_batch % (point.dp * mb) != 0) continue;
            if ((point.sequence_parallel && tp == 1) || (point.overlap_parameters && point.zero == 0)) continue;
            if (point.zero > 0 && point.dp == 1) continue;
            if ((v > 1 && bits / 48 == 1) || (pp == 1 && bits / 48 == 1)) continue;
            const auto answer = lower(model, cluster, strategy_at(options.base, point));
            if (std::holds_alternative<Infeasible>(answer)) continue;
            const Estimate estimate = refine(std::get<Lowered>(answer), cluster);
            const double score =
                options.objective == Objective::Memory ? static_cast<double>(estimate.peak.value) : estimate.time.value;
            best = std::min(best, score);
          }
  return best;
}

}  // namespace

// 24 spaces of 50 to 400 strategies, of which screening keeps 32; with a large reserve most do not fit.
TEST(Search, EqualsFullEnumerationOnSmallSpaces) {
  int spaces = 0;
  for (const int depth : {2, 4, 6})
    for (const std::int64_t batch : {4, 8})
      for (const double reserve : {0.06, 0.85})
        for (const Objective objective : {Objective::Time, Objective::Memory}) {
          const Cluster cluster = workstation(depth == 2 ? 4 : 2);
          const Model model = layers("gpt2-355m", depth);
          SearchOptions small = options(batch, 512);
          small.base.reserve = reserve;
          small.objective = objective;
          small.shortlist = 32, small.refine = 32;
          const auto answer = search(model, cluster, small);
          ASSERT_TRUE(std::holds_alternative<SearchResult>(answer)) << std::get<Infeasible>(answer).reason;
          const double found = std::get<SearchResult>(answer).ranked.front().score;
          EXPECT_DOUBLE_EQ(found, enumerate(model, cluster, small)) << depth << " layers, batch " << batch << ", " << reserve;
          small.prune = false;
          EXPECT_EQ(std::get<SearchResult>(search(model, cluster, small)).ranked.front().score, found);
          ++spaces;
        }
  EXPECT_GE(spaces, 20);
}

TEST(Search, ThreadsDoNotChangeTheAnswer) {
  const Model model = layers("gpt2-355m", 4);
  const Cluster cluster = workstation(4);
  SearchOptions one = options(8, 512), three = one;
  three.threads = 3;
  const auto a = std::get<SearchResult>(search(model, cluster, one)), b = std::get<SearchResult>(search(model, cluster, three));
  ASSERT_EQ(a.ranked.size(), b.ranked.size());
  for (std::size_t i = 0; i < a.ranked.size(); ++i) EXPECT_EQ(a.ranked[i].point, b.ranked[i].point) << i;
  EXPECT_EQ(a.enumerated, b.enumerated);
}

TEST(Search, FixedOptionsStay) {
  SearchOptions fixed = options(8, 512);
  fixed.base.tp = 2, fixed.base.zero = 1;
  fixed.fixed = {"tp", "zero"};
  const auto answer = search(layers("gpt2-355m", 4), workstation(4), fixed);
  for (const Candidate& c : std::get<SearchResult>(answer).ranked) {
    EXPECT_EQ(c.point.tp, 2);
    EXPECT_EQ(c.point.zero, 1);
  }
}

// Layer lists have no screen: all that can be is refined, and by cost alone ResNet-50 is trained data-parallel.
TEST(Search, LayerListsAreRefinedWhole) {
  const auto answer = search(load_model("resnet-50"), workstation(4), options(32, 0));
  const auto& result = std::get<SearchResult>(answer);
  EXPECT_EQ(result.refined, result.enumerated - result.pruned.shape);
  EXPECT_EQ(result.ranked.front().point.dp, 4);
}

TEST(Search, AnEmptySpaceSaysWhy) {
  SearchOptions odd = options(8, 512);
  odd.base.tp = 3;
  odd.fixed = {"tp"};
  const auto degrees = search(layers("gpt2-355m", 4), workstation(4), odd);
  EXPECT_NE(std::get<Infeasible>(degrees).reason.find("no degrees divide"), std::string::npos);
  odd.base.tp = 1, odd.fixed = {};
  odd.base.micro_batch = 3, odd.fixed = {"micro_batch"};
  EXPECT_NE(std::get<Infeasible>(search(layers("gpt2-355m", 4), workstation(4), odd)).reason.find("empty"), std::string::npos);
  odd = options(8, 512);
  odd.base.tp = 2, odd.fixed = {"tp"};  // 25 heads
  const auto heads = search(layers("gpt2-1.5b", 4), workstation(4), odd);
  EXPECT_NE(std::get<Infeasible>(heads).reason.find("25"), std::string::npos) << std::get<Infeasible>(heads).reason;
  const auto memory = search(load_model("gpt3-175b"), workstation(4), options(8, 2048));
  EXPECT_NE(std::get<Infeasible>(memory).reason.find("need more memory"), std::string::npos);
}

TEST(Search, TheFrontTradesTimeForMemory) {
  SearchOptions pareto = options(8, 512);
  pareto.objective = Objective::Pareto;
  const auto result = std::get<SearchResult>(search(layers("gpt2-355m", 4), workstation(4), pareto));
  ASSERT_GE(result.front.size(), 2u);
  for (std::size_t i = 1; i < result.front.size(); ++i) {
    EXPECT_GE(result.front[i].estimate.time, result.front[i - 1].estimate.time);
    EXPECT_LT(result.front[i].estimate.peak, result.front[i - 1].estimate.peak);
  }
}

// Estimates 1, 2, 3; the simulator makes the first one slow, so the third is looked at, too.
TEST(Search, RerankingGivesThePlaceOfASlowOneToTheNext) {
  std::vector<Candidate> ranked(3);
  for (int i = 0; i < 3; ++i)
    ranked[static_cast<std::size_t>(i)].point.dp = i + 1, ranked[static_cast<std::size_t>(i)].score = i + 1;
  rerank(ranked, 2, Objective::Time, [](const Candidate& c) { return c.point.dp == 1 ? 9.0 : c.point.dp + 0.5; });
  EXPECT_EQ(ranked[0].point.dp, 2);
  EXPECT_EQ(ranked[1].point.dp, 3);
  EXPECT_EQ(ranked[1].simulated, 3.5);
  EXPECT_EQ(ranked[2].simulated, 9.0);
}

}  // namespace foreshard
