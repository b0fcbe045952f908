// Messages that HybridEP sends beside the rows of experts.
#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/expert_issue.h"
#include "strategy/cost/plan_costs.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::expert_issue_messages_test {
namespace {

Compute send_once(std::int64_t parts, std::int64_t ranks) {
  ops::SendOnce op;
  op.ranks = ranks;
  return {.op = op, .shapes = {{.dims = {4096, 2048, 8, 128}, .dtype = DType::BF16}, {.dims = {parts, 3000}}}};
}

// 4096 tokens of a rank choose 8 of 128 experts, 3000 of them go to each of 8 parts. HybridEP sends 128 scores with each instead of 8, and
// 4096 x 128 bytes of the map to each part instead of 8 numbers of 8 bytes for each of 3000 tokens. Parts of several ranks have 16 experts.
TEST(ExpertIssue, HybridEpSendsScoresOfAllExperts) {
  const BesideRows ranks = beside_rows(send_once(8, 8)), nodes = beside_rows(send_once(8, 64));
  EXPECT_EQ(ranks.scores.value, 8LL * 3000 * 8 * 4);
  EXPECT_EQ(ranks.choices.value, 8LL * 3000 * 8 * 8);
  EXPECT_DOUBLE_EQ(ranks.more_scores, 16);
  EXPECT_DOUBLE_EQ(nodes.more_scores, 2);
  EXPECT_DOUBLE_EQ(ranks.more_choices, 4096.0 * 128 / (3000 * 8 * 8));
  const Cost cost = {.busy = {1000}, .wire_factor = 1.5};
  Collective what = {.kind = CollectiveKind::AllToAll, .bytes = ranks.scores};
  EXPECT_EQ(cost_beside(ranks, what, cost), (Cost{.busy = {}, .wire_factor = 24}));
  what.bytes = ranks.choices;
  EXPECT_EQ(cost_beside(ranks, what, cost), (Cost{.busy = {1000}, .wire_factor = 1.5 * ranks.more_choices}));
  what.bytes = {1};
  EXPECT_EQ(cost_beside(ranks, what, cost), cost);
  what = {.kind = CollectiveKind::AllReduce, .bytes = ranks.scores};
  EXPECT_EQ(cost_beside(ranks, what, cost), cost);
}

// Found in a plan: with a host for experts the messages beside the rows are HybridEP's, whose scores have no latency of their own.
TEST(ExpertIssue, MessagesBesideRowsAreFoundInPlans) {
  const FrameworkPreset none, hybrid = {.experts = {.per_kernel = {1e-9}}};
  Strategy strategy = {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 1024}, .zero = {.stage = 1}};
  strategy.experts.ep = 8, strategy.experts.dispatcher = Dispatcher::OncePerRank;
  Lowered job = lowered("qwen3-30b-a3b", "dgx-h100", strategy);
  const auto without_latency = [&](const FrameworkPreset& preset) {
    cost_plan(job.plan, load_cluster("dgx-h100"), preset);
    int count = 0;
    for (std::size_t s = 0; s < job.plan.segments.size(); ++s)
      for (std::size_t i = 0; i < job.plan.costs[0].by_segment[s].size(); ++i) {
        const auto* what = std::get_if<Collective>(&job.plan.segments[s].instructions[i].what);
        count += what && what->kind == CollectiveKind::AllToAll && job.plan.costs[0].by_segment[s][i].busy.value == 0;
      }
    return count;
  };
  EXPECT_EQ(without_latency(none), 0);
  EXPECT_EQ(without_latency(hybrid) % 48, 0);
  EXPECT_GE(without_latency(hybrid), 2 * 48);  // in the forward of each layer, and in its backward
}

}  // namespace
}  // namespace foreshard::expert_issue_messages_test
