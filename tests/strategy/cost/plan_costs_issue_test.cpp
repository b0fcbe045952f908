// What the host takes to issue the work of a plan.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/plan_costs.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::plan_costs_issue_test {
namespace {

// Llama-2 7B, tensor parallelism along the sequence, a host that needs 1 ms for each kernel and so is all there is. A forward gathers the
// rows of qkv and of gate and up in each of 32 layers, and those of the head; a backward the gradients of the results of projection and down.
// Their products run in three pieces, on two ranks in two, and one operator more is issued for allocating, slicing and waiting; without
// overlap (our strategy's `tp`) they wait for the whole gather.
TEST(PlanCosts, ProductsOfGatheredRowsAreIssuedInPieces) {
  const Cluster cluster = load_cluster("dgx-h100");
  const double slow = 1e-3;
  const auto further = [&](int tp, bool overlaps, const char* name) {
    Strategy strategy{.dp = 1, .tp = tp, .batch = {.micro = 1, .global = 1}};
    strategy.sequence_parallel = true;
    strategy.communication.overlap = Overlap{.tp = overlaps};
    Lowered job = lowered("llama-2-7b", "dgx-h100", strategy);
    const auto computes = [&](bool splits) {
      cost_plan(job.plan, cluster, {.host = {.per_kernel = {slow}, .splits_products = splits}});
      double seconds = 0;
      for (std::size_t s = 0; s < job.plan.segments.size(); ++s)
        for (std::size_t i = 0; i < job.plan.segments[s].instructions.size(); ++i)
          if (job.plan.segments[s].name.starts_with(name) &&
              std::holds_alternative<Compute>(job.plan.segments[s].instructions[i].what))
            seconds += to_seconds(job.plan.costs[0].by_segment[s][i].busy).value;
      return seconds;
    };
    return (computes(true) - computes(false)) / slow;
  };
  EXPECT_NEAR(further(8, true, "forward"), 3 * 65, 0.01);
  EXPECT_NEAR(further(8, true, "backward"), 3 * 64, 0.01);
  EXPECT_NEAR(further(2, true, "forward"), 2 * 65, 0.01);
  EXPECT_NEAR(further(8, false, "forward"), 0, 0.01);
}

// A pipeline of four stages whose host needs 10 s for a micro-batch: the first stage reads its tokens, the last one its targets, the others
// and all backwards read nothing.
TEST(PlanCosts, OnlyEndsOfAPipelineFetchMicrobatches) {
  Lowered job = lowered("llama-2-7b", "dgx-h100", {.dp = 1, .pp = 4, .batch = {.micro = 1, .global = 4}});
  cost_plan(job.plan, load_cluster("dgx-h100"), {.host = {.per_microbatch = {10}}});
  std::vector<int> slow;
  for (const Role& role : job.plan.roles) {
    std::set<std::size_t> segments;
    for (const Action& action : role.actions) segments.insert(action.segment.index());
    int of_role = 0;
    for (const std::size_t segment : segments) {
      double seconds = 0;
      for (const Cost& cost : job.plan.costs[0].by_segment[segment]) seconds += to_seconds(cost.busy).value;
      of_role += seconds >= 10 ? 1 : 0;
    }
    slow.push_back(of_role);
  }
  EXPECT_EQ(slow, (std::vector<int>{1, 0, 0, 1}));
}

}  // namespace
}  // namespace foreshard::plan_costs_issue_test
