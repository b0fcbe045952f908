// What --algorithm becomes in a plan.
#include "strategy/cost/settle_algorithms.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/network/collective_rounds.h"
#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "tests/strategy/support_alone.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::settle_algorithms_test {
namespace {

std::vector<Collective> collectives(const Plan& plan) {
  std::vector<Collective> all;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      if (const auto* what = std::get_if<Collective>(&run.what)) all.push_back(*what);
  return all;
}

Strategy of(std::optional<Algorithm> algorithm, int servers = 0) {
  return {
      .dp = 16, .batch = {.micro = 1, .global = 16, .seq = 128}, .communication = {.algorithm = algorithm, .servers = servers}};
}

TEST(SettleAlgorithms, ServersAreAllMembersUnlessSaid) {
  for (const auto& [servers, expected] : {std::pair{0, 16}, {3, 3}, {1, 1}, {40, 16}}) {
    const Lowered job = lowered("gpt2-124m", "dgx-a100-x2", of(Algorithm::ParameterServer, servers));
    ASSERT_FALSE(collectives(job.plan).empty());
    for (const Collective& what : collectives(job.plan)) {
      EXPECT_EQ(what.algorithm, Algorithm::ParameterServer);
      EXPECT_EQ(what.servers, expected);
    }
  }
}

// Two nodes of eight. Spread: every fourth member; nodes: the first member of each node, then the second of each.
TEST(SettleAlgorithms, ServersArePlacedAsSaid) {
  using enum ServerPlacement;
  const std::vector<std::tuple<ServerPlacement, int, std::vector<std::int32_t>>> cases = {
      {First, 4, {}},          {Spread, 4, {0, 4, 8, 12}}, {Nodes, 4, {0, 8, 1, 9}},
      {Spread, 3, {0, 5, 10}}, {Nodes, 3, {0, 8, 1}},      {Nodes, 1, {}},
      {Spread, 0, {}}};
  for (const auto& [placement, servers, members] : cases) {
    Strategy strategy = of(Algorithm::ParameterServer, servers);
    strategy.communication.server_placement = placement;
    const Plan plan = lowered("gpt2-124m", "eth25-a100-x2", strategy).plan;
    for (const Collective& what : collectives(plan)) EXPECT_EQ(what.served_by, members);
    EXPECT_TRUE(check_plan(plan).empty());
    EXPECT_EQ(parse_plan(to_json(plan), "plan"), plan);
  }
}

// With tp 4 the members of a data-parallel group are two of each node; on all ranks of the group they have the same positions.
TEST(SettleAlgorithms, ServersOfAGroupThatIsSpreadOverNodes) {
  Strategy strategy = of(Algorithm::ParameterServer, 2);
  strategy.tp = 4, strategy.dp = 4, strategy.batch.global = 4;
  strategy.communication.server_placement = ServerPlacement::Nodes;
  bool found = false;
  for (const Collective& what : collectives(lowered("gpt2-124m", "eth25-a100-x2", strategy).plan))
    if (what.algorithm == Algorithm::ParameterServer && !what.served_by.empty()) {
      EXPECT_EQ(what.served_by, (std::vector<std::int32_t>{0, 2}));
      found = true;
    }
  EXPECT_TRUE(found);
}

TEST(SettleAlgorithms, AServerThatIsNoMemberIsFound) {
  Strategy strategy = of(Algorithm::ParameterServer, 2);
  strategy.communication.server_placement = ServerPlacement::Nodes;
  Plan plan = lowered("gpt2-124m", "eth25-a100-x2", strategy).plan;
  for (Segment& segment : plan.segments)
    for (Instruction& run : segment.instructions)
      if (auto* what = std::get_if<Collective>(&run.what)) what->served_by.back() = 16;
  const auto defects = check_plan(plan);
  ASSERT_FALSE(defects.empty());
  EXPECT_EQ(defects.front().rule, "server-missing");
}

// With ZeRO 1 every member is the server of its part, which it updates and sends: a push and a pull in one step each, not a ring.
TEST(SettleAlgorithms, WhereStatesAreShardedEveryMemberServes) {
  Strategy strategy = of(Algorithm::ParameterServer);
  strategy.zero.stage = 1;
  std::set<CollectiveKind> kinds;
  const Plan plan = lowered("gpt2-124m", "dgx-a100-x2", strategy).plan;
  for (const Collective& what : collectives(plan)) {
    EXPECT_EQ(what.algorithm, Algorithm::ParameterServer);
    EXPECT_EQ(what.servers, 16);
    kinds.insert(what.kind);
    EXPECT_EQ(collective_rounds(what, 16).rounds.size(), 1u);
  }
  EXPECT_EQ(kinds, (std::set{CollectiveKind::ReduceScatter, CollectiveKind::AllGather}));
  EXPECT_TRUE(check_plan(plan).empty());
  strategy.communication.servers = 4;
  EXPECT_EQ(refused(load_model("gpt2-124m"), load_cluster("dgx-a100-x2"), strategy).reason,
            "with ZeRO 1 each of 16 ranks serves the part of which it has the optimizer states, not 4 servers");
}

// Hierarchies and trees know how many members of a node follow each other; where an algorithm is none for a collective it is a ring.
TEST(SettleAlgorithms, APlanSaysWhatIsCarriedOut) {
  for (const Collective& what : collectives(lowered("gpt2-124m", "dgx-a100-x2", of(Algorithm::Hierarchical)).plan)) {
    EXPECT_EQ(what.algorithm, Algorithm::Hierarchical);
    EXPECT_EQ(what.servers, 8);
  }
  Strategy one_node = of(Algorithm::Hierarchical);
  one_node.dp = 8, one_node.batch.global = 8;
  for (const Collective& what : collectives(lowered("gpt2-124m", "dgx-a100", one_node).plan))
    EXPECT_EQ(what, (Collective{.group = what.group, .bytes = what.bytes, .dtype = what.dtype}));
  for (const Collective& what : collectives(lowered("gpt2-124m", "dgx-a100-x2", of(Algorithm::NvlinkSharp)).plan))
    EXPECT_EQ(what.algorithm, Algorithm::Ring);
  Strategy sharded = of(Algorithm::Tree);
  sharded.zero.stage = 1;
  for (const Collective& what : collectives(lowered("gpt2-124m", "dgx-a100-x2", sharded).plan))
    EXPECT_EQ(what.algorithm == Algorithm::Tree, what.kind == CollectiveKind::AllReduce);
}

// No other algorithm takes less time alone than the one that is chosen; large and small sums do not choose the same.
TEST(SettleAlgorithms, TheCheapestIsChosenForEach) {
  std::set<Algorithm> chosen;
  for (const char* name : {"dgx-h100-x2", "eth25-a100-x2"}) {
    const Cluster cluster = load_cluster(name);
    const Network network(cluster);
    Strategy strategy = of({});
    strategy.optimizer.clip_norm = 1;
    strategy.tp = 2, strategy.dp = network.devices() / 2, strategy.batch.global = strategy.dp;
    const Lowered job = lowered(load_model("gpt2-124m"), cluster, strategy);
    EXPECT_TRUE(check_plan(job.plan).empty());
    const std::vector<SettledCollective> all = settled_collectives(job.plan, cluster);
    ASSERT_FALSE(all.empty());
    for (const SettledCollective& one : all) {
      chosen.insert(one.what.algorithm);
      const Ranks ranks(job.plan);
      std::vector<DeviceId> devices;
      for (const RankId member : ranks.members(one.what.group, RankId{0})) devices.push_back(ranks.device(member));
      EXPECT_NEAR(one.alone.value, alone(network, one.what, devices), 1e-9) << one.name;
      for (const Algorithm other : {Algorithm::Ring, Algorithm::Tree, Algorithm::DoubleTree, Algorithm::TwoDimensional}) {
        Collective what = one.what;
        what.algorithm = other;
        if (!algorithm_applies(what, static_cast<int>(devices.size()))) continue;
        EXPECT_LE(one.alone.value, alone(network, what, devices) + 1e-9) << one.name << " " << name_of(other);
      }
    }
  }
  EXPECT_GT(chosen.size(), 1u);
}

// A framework's collectives are left to NCCL: sums of gradients over more than four nodes take double trees where those are quicker; other
// collectives, few nodes and an algorithm that is named stay. Our own plans say what is carried out.
TEST(SettleAlgorithms, NcclChoosesTreesForFrameworks) {
  const auto of_framework = [](const char* framework, const char* cluster, std::optional<Algorithm> algorithm, Bytes bucket) {
    Strategy strategy = of(algorithm);
    strategy.framework = framework;
    strategy.dp = load_cluster(cluster).nodes.front().count * 8;
    strategy.batch.global = strategy.dp;
    strategy.communication.bucket = bucket;
    const Lowered job = lowered("gpt2-1.5b", cluster, strategy);
    EXPECT_TRUE(check_plan(job.plan).empty());
    std::map<Algorithm, int> found;
    for (const Collective& what : collectives(job.plan)) ++found[what.algorithm];
    return found;
  };
  constexpr Bytes kSmall = {4 << 20}, kLarge = {std::int64_t{4} << 30};
  const auto trees = of_framework("megatron", "dgx-h100-x32", Algorithm::Ring, kSmall);
  EXPECT_GT(trees.count(Algorithm::DoubleTree), 0u);
  EXPECT_EQ(of_framework("megatron", "dgx-h100-x8", Algorithm::Ring, kLarge).count(Algorithm::DoubleTree), 0u);
  EXPECT_EQ(of_framework("megatron", "dgx-h100-x4", Algorithm::Ring, kSmall).count(Algorithm::DoubleTree), 0u);
  EXPECT_EQ(of_framework("foreshard", "dgx-h100-x32", Algorithm::Ring, kSmall).count(Algorithm::DoubleTree), 0u);
  EXPECT_EQ(of_framework("megatron", "dgx-h100-x32", Algorithm::Hierarchical, kSmall).count(Algorithm::DoubleTree), 0u);
}

// Gradients that are gathered on a root: it has places for G of one other at a time, or of all n - 1 with a credit that lets them. One
// program for all members, so all of them have the places.
TEST(SettleAlgorithms, TheRootHasPlacesForWhatItGathers) {
  const auto places = [](Bytes credit) {
    Strategy strategy = of(Algorithm::GatherToRoot);
    strategy.communication.credit = credit;
    strategy.communication.bucket = {std::int64_t{1} << 40};
    const Lowered job = lowered("gpt2-124m", "dgx-a100-x2", strategy);
    EXPECT_TRUE(check_plan(job.plan).empty());
    Bytes largest = {};
    for (const Collective& what : collectives(job.plan)) largest = std::max(largest, what.bytes);
    const Bytes other = slots(lowered("gpt2-124m", "dgx-a100-x2", of(Algorithm::Ring)).plan.roles[0], Category::Communication);
    return std::pair{slots(job.plan.roles[0], Category::Communication) - other, largest};
  };
  const auto [streamed, gradient] = places({});
  EXPECT_EQ(streamed, gradient);
  const auto [naive, same] = places({std::int64_t{1} << 40});
  EXPECT_EQ(naive, same * 15);
}

// Sums of activations between tensor-parallel ranks are not gathered.
TEST(SettleAlgorithms, OnlyGradientsAreGatheredOnARoot) {
  Strategy strategy = of(Algorithm::GatherToRoot);
  strategy.dp = 8, strategy.tp = 2;
  std::set<Algorithm> found;
  const Lowered job = lowered("gpt2-124m", "dgx-a100-x2", strategy);
  for (const Collective& what : collectives(job.plan)) {
    const bool data = job.plan.groups[what.group.index()].name == "data";
    EXPECT_EQ(what.algorithm, data ? Algorithm::GatherToRoot : Algorithm::Ring);
    found.insert(what.algorithm);
  }
  EXPECT_EQ(found.size(), 2u);
}

}  // namespace
}  // namespace foreshard::settle_algorithms_test
