// Expert imbalance as a cause of idle time: in simulated runs of a mixture of experts with uneven loads.
#include <gtest/gtest.h>

#include <cmath>

#include "core/cluster_file/cluster_file.h"
#include "core/plan/cost_tables.h"
#include "report/causes/binding.h"
#include "report/causes/bubbles.h"
#include "sim/simulate.h"
#include "strategy/tune/tune.h"
#include "tests/core/support_models.h"
#include "tests/report/played.h"

namespace foreshard::expert_imbalance_test {
namespace {

// Two layers of eight experts on eight GPUs of a node, an expert on each.
Plan mixture(const ExpertLoad& load, int pp = 1) {
  Model model = gpt(2, 1024, 8, 1024, 1024);
  Transformer& small = std::get<Transformer>(model.shape);
  small.ffn_hidden = 1024;
  small.block.experts = {.count = 8, .chosen = 2, .width = 2048};
  small.mlp_bias = false;
  Strategy s{.dp = 8 / pp, .pp = pp, .experts = {.ep = 8 / pp, .load = load}, .batch = {.micro = 1, .global = 16, .seq = 1024}};
  auto lowered = tuned_plan(model, load_cluster("dgx-h100"), s);
  if (const auto* refused = std::get_if<Infeasible>(&lowered)) ADD_FAILURE() << refused->reason;
  return std::get<Lowered>(std::move(lowered)).plan;
}

Result unfolded(const Plan& plan, SimulateOptions options = {.granularity = Granularity::Op}) {
  options.folding = Folding::None;
  return simulate(plan, load_cluster("dgx-h100"), options);
}

// [class] idle time with this cause. The causes together are the whole idle time.
std::vector<Nanoseconds> idle(const Result& result, BubbleCause cause) {
  std::vector<Nanoseconds> of(result.trace.classes.size()), all = of;
  for (const Bubble& bubble : find_bubbles(result.plan, result.trace, bind_spans(result.plan, result.trace))) {
    all[bubble.who.index()] += bubble.end - bubble.begin;
    if (bubble.cause == cause) of[bubble.who.index()] += bubble.end - bubble.begin;
  }
  for (std::size_t c = 0; c < all.size(); ++c)
    EXPECT_EQ(all[c], played::idle_of(result.plan, result.trace, {static_cast<std::int32_t>(c)})) << c;
  return of;
}

TEST(ExpertImbalance, BalancedLoadsHaveNone) {
  const Plan plan = mixture({});
  for (const Nanoseconds time : idle(unfolded(plan), BubbleCause::Imbalance)) EXPECT_EQ(time, Nanoseconds{});
  // A slow GPU computes its experts longer, but it has no more rows.
  const SimulateOptions slow{.granularity = Granularity::Op, .stragglers = {{{0}, 1.5}}};
  for (const Nanoseconds time : idle(unfolded(plan, slow), BubbleCause::Imbalance)) EXPECT_EQ(time, Nanoseconds{});
}

// The most loaded rank has twice the mean, so each of the other seven has (8 - 2) / 7 of the mean: 3/7 of its rows. They wait for it in
// every all-to-all behind the experts, together for 4/7 of the time of all its grouped products.
TEST(ExpertImbalance, TheOthersWaitForTheDifference) {
  const Plan plan = mixture({.kind = ExpertLoad::Kind::Factor, .value = 2});
  const Result result = unfolded(plan);
  const CostTable& costs = plan.costs.front();
  double seconds = 0;
  int products = 0;
  for (const Action& action : plan.roles.front().actions) {
    const std::vector<Instruction>& all = plan.segments[action.segment.index()].instructions;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto* what = std::get_if<Compute>(&all[i].what);
      if (!what || !is<ops::GroupedMatMul>(what->op)) continue;
      EXPECT_NEAR(std::get<ops::GroupedMatMul>(what->op).others, 3.0 / 7, 1e-3);
      seconds += to_seconds(costs.by_segment[action.segment.index()][i].busy).value;
      ++products;
    }
  }
  EXPECT_EQ(products, 2 * 2 * 2 * 3);  // micro-batches of a rank, layers, products, phases
  const std::vector<Nanoseconds> waited = idle(result, BubbleCause::Imbalance);
  EXPECT_EQ(waited[0], Nanoseconds{});
  for (std::size_t rank = 1; rank < waited.size(); ++rank)
    EXPECT_NEAR(to_seconds(waited[rank]).value, seconds * 4 / 7, 2e-3 * seconds) << rank;
  for (const Nanoseconds time : idle(result, BubbleCause::Straggler)) EXPECT_EQ(time, Nanoseconds{});
}

// The most loaded rank decides how long a run takes: as if all had as many rows.
TEST(ExpertImbalance, TheRunTakesAsLongAsTheMostLoadedRank) {
  const Plan plan = mixture({.kind = ExpertLoad::Kind::Gini, .value = 0.3});
  Plan full = plan;
  for (Segment& segment : full.segments)
    for (Instruction& run : segment.instructions)
      if (auto* what = std::get_if<Compute>(&run.what))
        if (auto* product = std::get_if<ops::GroupedMatMul>(&what->op)) {
          EXPECT_LT(product->others, 1);
          product->others = 1;
        }
  EXPECT_EQ(unfolded(plan).trace.makespan, unfolded(full).trace.makespan);
}

// Folding has the most loaded ranks and the others in classes apart, at every granularity.
TEST(ExpertImbalance, FoldingKeepsIt) {
  for (const int pp : {1, 2}) {
    const Plan plan = mixture({.kind = ExpertLoad::Kind::Factor, .value = 1.5}, pp);
    const Result all = unfolded(plan);
    const std::vector<Nanoseconds> by_rank = idle(all, BubbleCause::Imbalance);
    for (const Granularity granularity : {Granularity::Op, Granularity::Layer, Granularity::Stage}) {
      const Result folded = simulate(plan, load_cluster("dgx-h100"), {.granularity = granularity});
      EXPECT_LT(folded.trace.classes.size(), 8u);
      EXPECT_NEAR(folded.makespan_s, all.makespan_s, 1e-9 * all.makespan_s);
      const std::vector<Nanoseconds> by_class = idle(folded, BubbleCause::Imbalance);
      for (std::size_t c = 0; c < by_class.size(); ++c)
        for (const RankId rank : folded.trace.classes[c].members)
          EXPECT_NEAR(to_seconds(by_class[c]).value, to_seconds(by_rank[rank.index()]).value, 1e-3 * all.makespan_s)
              << "pp " << pp << ", rank " << rank.value;
    }
  }
}

}  // namespace
}  // namespace foreshard::expert_imbalance_test
