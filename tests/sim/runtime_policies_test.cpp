// Runtime policies on Llama-2-7B: what the plans hold and bring, as they are played, is what the residency says.
#include <gtest/gtest.h>

#include <set>

#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "sim/simulate.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/tune/tune.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::runtime_policies_test {
namespace {

// Hidden size 4096, feed-forward 11008, vocabulary 32000.
constexpr std::int64_t kEmbedding = 131'072'000, kBlock = 202'383'360, kHead = kEmbedding + 4096;

struct Expected {
  std::vector<ParameterUnit> units = {{"embedding", kEmbedding}};
  std::vector<UnitUse> uses = step_order(34);
  Residency residency = {};
};
Expected expected(const RuntimePolicy& policy) {
  Expected all;
  for (int layer = 0; layer < 32; ++layer) all.units.push_back({"layer", kBlock});
  all.units.push_back({"head", kHead});
  all.uses.pop_back();  // the backward of the embedding reads no parameters
  LayerUnits laid = units_of_layers(*policy.layers, all.units);
  for (UnitUse& use : all.uses) use.unit = laid.of_layer[static_cast<std::size_t>(use.unit)];
  all.units = std::move(laid.units);
  all.residency = residency_of(*policy.layers, all.units, all.uses);
  return all;
}

Result played(const std::string& policy) {
  const Strategy strategy{.dp = 8, .policy = policy};
  const Cluster cluster = load_cluster("dgx-a100");
  return simulate(lowered(load_model("llama-2-7b"), cluster, strategy).plan, cluster, {.granularity = Granularity::Op});
}

// Live bytes of the places of gathered parameters and of what is copied out of them, at their peak.
Bytes gathered_peak(const Result& result) {
  Plan only = result.plan;
  for (Role& role : only.roles)
    for (Buffer& buffer : role.buffers)
      if (!buffer.name.starts_with("gathered") && !buffer.name.starts_with("copied_out")) buffer.bytes = {};
  return sum(memory_timeline(only, result.trace).curves.front().peak);
}

Bytes gathered_bytes(const Plan& plan) {
  Bytes bytes = {};
  for (const Action& action : plan.roles[0].actions)
    for (const Instruction& run : plan.segments[action.segment.index()].instructions)
      if (run.name == "gather") bytes += std::get<Collective>(run.what).bytes;
  return bytes;
}

}  // namespace

TEST(RuntimePolicies, FourPeaksOfLlama) {
  std::set<Bytes> peaks;
  for (const char* name : {"deepspeed_z3", "fsdp2", "bmtrain_z3", "bmtrain_z2"}) {
    const RuntimePolicy& policy = *find_policy(name);
    const Expected of = expected(policy);
    EXPECT_EQ(residency_fault(of.units, of.uses, of.residency), "") << name;
    const Result result = played(name);
    const Bytes peak = gathered_peak(result);
    EXPECT_EQ(peak, peak_bytes(of.units, of.uses, of.residency)) << name;
    EXPECT_EQ(gathered_bytes(result.plan).value, 2 * brought_elements(of.units, of.residency)) << name;
    peaks.insert(peak);
  }
  EXPECT_EQ(peaks.size(), 4U);
}

// Chunks of whole layers: the embedding, each block and the head are chunks of their own. On A100s of 9 GiB the budgets bind.
TEST(RuntimePolicies, ChunksOfLlama) {
  Cluster cluster = load_cluster("dgx-a100");
  for (auto& gpu : cluster.gpus) gpu.memory = Bytes{std::int64_t{9} << 30};
  std::set<Bytes> peaks;
  for (const char* name : {"gemini_cpu", "gemini_static", "gemini_auto", "patrickstar"}) {
    const Strategy strategy{.dp = 8, .batch = {.micro = 1}, .policy = name, .recompute = parse_recompute("full", "test")};
    const Plan plan = lowered(load_model("llama-2-7b"), cluster, strategy).plan;
    RuntimePolicy policy = *find_policy(name);
    auto& rule = std::get<ChunkRule>(policy.layers->rule);
    if (rule.cap_ratio > 0) {
      Bytes others = arena_bytes(plan.roles[0], Space::Device) + plan.framework;
      for (const Buffer& buffer : plan.roles[0].buffers)
        if (buffer.name.starts_with("gathered")) others = others - buffer.bytes * std::ssize(buffer.offsets);
      rule.budget =
          static_cast<std::int64_t>(rule.cap_ratio * static_cast<double>(std::int64_t{9} << 30)) / 2 - others.value / 2;
    }
    const Expected of = expected(policy);
    EXPECT_EQ(residency_fault(of.units, of.uses, of.residency), "") << name;
    const Result result = simulate(plan, cluster, {.granularity = Granularity::Op});
    const Bytes peak = gathered_peak(result);
    EXPECT_EQ(peak, peak_bytes(of.units, of.uses, of.residency)) << name;
    EXPECT_EQ(gathered_bytes(plan).value, 2 * brought_elements(of.units, of.residency)) << name;
    if (rule.cap_ratio > 0) {
      EXPECT_LE(peak, Bytes{2 * rule.budget}) << name;
    }
    peaks.insert(peak);
  }
  EXPECT_EQ(peaks.size(), 4U);
  EXPECT_EQ(*peaks.begin(), Bytes{2 * kBlock});  // gemini_cpu
}

// The greedy planner within 10 GiB, prefetching and synchronous: what is there and what is brought is the residency of its choices, to the
// byte.
TEST(RuntimePolicies, RegionsOfLlama) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Model model = load_model("llama-2-7b");
  const Bytes budget = {std::int64_t{10} << 30};
  for (const char* name : {"greedy", "greedy_sync"}) {
    Strategy strategy{.dp = 8, .batch = {.micro = 1}, .policy = name, .recompute = parse_recompute("full", "test")};
    strategy.offload.budget = budget;
    auto tuned = tune(model, cluster, strategy);
    ASSERT_TRUE(std::holds_alternative<Tuned>(tuned)) << std::get<Infeasible>(tuned).reason;
    const Tuned& closed = std::get<Tuned>(tuned);
    const Plan plan = std::get<Lowered>(lower(model, cluster, closed.strategy, {}, closed.rows)).plan;
    EXPECT_LE(arena_bytes(plan.roles[0], Space::Device), budget) << name;
    RuntimePolicy policy = *find_policy(name);
    policy.layers->rule = *closed.rows.regions;
    const Expected of = expected(policy);
    EXPECT_EQ(residency_fault(of.units, of.uses, of.residency), "") << name;
    const Result result = simulate(plan, cluster, {.granularity = Granularity::Op});
    EXPECT_EQ(gathered_peak(result), peak_bytes(of.units, of.uses, of.residency)) << name;
    EXPECT_EQ(gathered_bytes(plan).value, 2 * brought_elements(of.units, of.residency)) << name;
    EXPECT_GT(gathered_bytes(plan), Bytes{2 * (32 * kBlock + 2 * kEmbedding)}) << name;  // some come twice
  }
}

// Two blocks; three with the staging copy; all of them, and the head that is gathered beside the last one.
TEST(RuntimePolicies, PeaksOfBlocksInClosedForm) {
  EXPECT_EQ(gathered_peak(played("fsdp")), Bytes{2 * 2 * kBlock});
  EXPECT_EQ(gathered_peak(played("fsdp2")), Bytes{3 * 2 * kBlock});
  EXPECT_EQ(gathered_peak(played("bmtrain_z2")), Bytes{2 * (32 * kBlock + kHead)});
}

}  // namespace foreshard::runtime_policies_test
