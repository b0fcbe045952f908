// Sums of gradients by priority: what the next forward needs first is summed first, and steps overlap.
#include <gtest/gtest.h>

#include <map>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "sim/simulate.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::sum_order_test {
namespace {

Strategy replicas(SumOrder order, Bytes partition = {}) {
  Strategy strategy{.dp = 16, .batch = {.micro = 4, .global = 64, .seq = 256}};
  strategy.communication.bucket = {8 << 20};
  strategy.communication.order = order, strategy.communication.partition = partition;
  return strategy;
}

Lowered job(const Strategy& strategy) { return lowered("gpt2-124m", "eth25-a100-x2", strategy); }

// Of a step in a row of them.
double period(const Plan& plan) {
  const Cluster cluster = load_cluster("eth25-a100-x2");
  const auto time = [&](int runs) {
    return simulate(plan, cluster, {.granularity = Granularity::Op, .memory = false, .runs = runs}).makespan_s;
  };
  return (time(5) - time(2)) / 3;
}

std::vector<const Instruction*> sums(const Plan& plan) {
  std::vector<const Instruction*> all;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      if (std::holds_alternative<Collective>(run.what)) all.push_back(&run);
  return all;
}

// Every element of every gradient is summed once, whatever the parts; the plan is sound.
TEST(SumOrder, PartsAreAllOfTheGradients) {
  const Plan whole = job(replicas(SumOrder::Ready)).plan;
  for (const Bytes partition : {Bytes{}, Bytes{1 << 20}, Bytes{999'999}}) {
    const Plan plan = job(replicas(SumOrder::Priority, partition)).plan;
    EXPECT_TRUE(check_plan(plan).empty());
    std::map<BufferId, Bytes> at;
    Bytes all = {}, expected = {};
    for (const Instruction* run : sums(plan)) {
      const Use& use = run->reads.front();
      EXPECT_EQ(use, run->writes.front());
      EXPECT_EQ(use.from, at[use.buffer]);  // a unit's parts follow each other
      const Bytes bytes = std::get<Collective>(run->what).bytes;
      EXPECT_LE(bytes.value, partition > Bytes{} ? partition.value + 64 * 4 : bytes.value);
      at[use.buffer] += bytes, all += bytes;
    }
    for (const Instruction* run : sums(whole)) expected += std::get<Collective>(run->what).bytes;
    EXPECT_EQ(all, expected);
  }
}

// gpt2-1.5b over 25 Gbit/s: a forward takes 0.4 s, a backward 0.9 s, sums 1.9 s. As they are ready a step is the forward, the first layers of the
// backward and all sums; by priority the forward of the next step goes on beside the sums that it does not need yet. In parts more of it.
TEST(SumOrder, StepsOverlapByPriority) {
  const auto with = [](SumOrder order, Bytes partition) {
    Strategy strategy{.dp = 16, .batch = {.micro = 32, .global = 512, .seq = 1024}};
    strategy.communication.bucket = {40 << 20};
    strategy.communication.order = order, strategy.communication.partition = partition;
    return period(lowered("gpt2-1.5b", "eth25-a100-x2", strategy).plan);
  };
  const double ready = with(SumOrder::Ready, {}), whole = with(SumOrder::Priority, {}),
               parts = with(SumOrder::Priority, {8 << 20});
  EXPECT_LT(whole, 0.92 * ready);
  EXPECT_LT(parts, 0.88 * ready);
}

// What cannot be updated unit by unit has the order it had.
TEST(SumOrder, NormsAndShardsKeepTheirOrder) {
  for (const int zero : {0, 1, 3}) {
    Strategy with = replicas(SumOrder::Priority, {1 << 20}), without = replicas(SumOrder::Ready);
    with.zero.stage = without.zero.stage = zero;
    if (zero == 0) with.optimizer.clip_norm = without.optimizer.clip_norm = 1;
    EXPECT_EQ(program_hash(job(with).plan), program_hash(job(without).plan)) << zero;
  }
}

}  // namespace
}  // namespace foreshard::sum_order_test
