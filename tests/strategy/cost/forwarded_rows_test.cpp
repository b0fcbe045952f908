// Phases of a dispatcher that run at the same time: a closed form, who forwards whom in plans, and DeepEP's published bandwidths.
#include "strategy/cost/forwarded_rows.h"

#include <gtest/gtest.h>

#include <set>

#include "core/op/expert_copies.h"
#include "core/plan/ranks.h"
#include "strategy/cost/communication_path.h"
#include "strategy/cost/plan_costs.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::forwarded_rows_test {
namespace {

// 8 s between nodes, 4 s inside: 8 s and one of 16 chunks of the 4 s; in the other order as well.
TEST(ForwardedRows, TheLongerPhaseAndAChunkOfTheShorter) {
  EXPECT_DOUBLE_EQ(8 + 4 * still_to_send(8, 4), 8 + 4.0 / 16);
  EXPECT_DOUBLE_EQ(4 + 8 * still_to_send(4, 8), 8 + 4.0 / 16);
  EXPECT_DOUBLE_EQ(still_to_send(0, 4), 1);
  EXPECT_DOUBLE_EQ(still_to_send(4, 0), 1);
}

// DeepSeek-V3 with one layer with experts, 4096 tokens a rank, as DeepEP's tests have it: on up to four nodes a node is a group of experts,
// four of which a token uses.
Model one_mixture(int nodes) {
  Model model = load_model("deepseek-v3");
  auto& shape = std::get<Transformer>(model.shape);
  shape.layers = 1, shape.block.mtp_modules = 0;
  Experts& experts = shape.block.experts;
  experts.layers = {true};
  experts.groups = nodes, experts.chosen_groups = std::min(nodes, 4);
  experts.best_of_group = std::min<std::int64_t>(experts.best_of_group, 2);
  return model;
}

Lowered of_nodes(int nodes, Dispatcher dispatcher, Codec codec = Codec::None,
                 const std::string& framework = Strategy{}.framework, const std::string& node = "dgx-h800") {
  Strategy strategy = {.dp = 8 * nodes, .batch = {.micro = 1, .global = 8 * nodes, .seq = 4096}, .zero = {.stage = 1}};
  strategy.experts.ep = 8 * nodes, strategy.experts.dispatcher = dispatcher;
  strategy.communication.dispatch.codec = codec;
  strategy.framework = framework;
  return lowered(one_mixture(nodes), load_cluster(node + "-x" + std::to_string(nodes)), strategy);
}

using Pairs = std::set<std::pair<std::string, std::string>>;
Pairs pairs_of(const Plan& plan) {
  Pairs pairs;
  for (const Segment& segment : plan.segments) {
    const std::vector<int> forwards = forwarded_rows(plan, plan.roles.front(), segment);
    for (std::size_t i = 0; i < forwards.size(); ++i)
      if (forwards[i] >= 0)
        pairs.emplace(segment.instructions[static_cast<std::size_t>(forwards[i])].name, segment.instructions[i].name);
  }
  return pairs;
}

// Rows and results in the forward, gradients of results and of rows in the backward; counts go beside the rows.
TEST(ForwardedRows, RowsResultsAndTheirGradientsAreForwarded) {
  const Pairs both_ways = {{"dispatch_once_all_to_all", "dispatch_all_to_all"},
                           {"dispatch_once_all_to_all", "expert_counts_all_to_all"},
                           {"combine_all_to_all", "combine_once_all_to_all"},
                           {"combine_once_all_to_all", "combine_all_to_all"},
                           {"dispatch_all_to_all", "dispatch_once_all_to_all"}};
  EXPECT_EQ(pairs_of(of_nodes(2, Dispatcher::OncePerNode).plan), both_ways);
  EXPECT_TRUE(pairs_of(of_nodes(2, Dispatcher::OncePerRank).plan).empty());
  EXPECT_TRUE(pairs_of(of_nodes(2, Dispatcher::Hierarchical).plan).empty());
}

// Isolated seconds of the all-to-alls of the forward with one of these names.
double time_of(const Lowered& job, const Cluster& cluster, const std::set<std::string>& names) {
  const Network network(cluster);
  const Ranks ranks(job.plan);
  double time = 0;
  for (std::size_t s = 0; s < job.plan.segments.size(); ++s) {
    if (!job.plan.segments[s].name.starts_with("forward")) continue;
    for (std::size_t i = 0; i < job.plan.segments[s].instructions.size(); ++i) {
      const Instruction& run = job.plan.segments[s].instructions[i];
      if (!std::holds_alternative<Collective>(run.what) || !names.contains(run.name.substr(0, run.name.find(',')))) continue;
      const auto& what = std::get<Collective>(run.what);
      std::vector<DeviceId> devices;
      for (const RankId member : ranks.members(what.group, ranks.first({0}))) devices.push_back(ranks.device(member));
      const Cost& cost = job.plan.costs[0].by_segment[s][i];
      time += to_seconds(cost.busy).value + communication_path(network, what, devices).flow.value * cost.wire_factor;
    }
  }
  return time;
}

// DeepEP's README, normal kernels on H800 with 400 Gb/s a GPU: bandwidth as DeepEP counts it, of the rows that a rank sends to all nodes (on
// one node: to all ranks), itself included. With 16 ranks NVLink limits, with more the network (deepseek-ai/DeepEP issue 285).
TEST(ForwardedRows, PublishedBandwidthsOfDeepEp) {
  struct Published {
    int nodes;
    double dispatch, combine;  // GB/s, in 8 and 16 bits
  };
  for (const auto& [nodes, dispatch, combine] : {Published{1, 153, 158}, {2, 43, 43}, {4, 58, 57}, {8, 51, 50}}) {
    const Lowered job = of_nodes(nodes, nodes == 1 ? Dispatcher::OncePerRank : Dispatcher::OncePerNode, Codec::Float8);
    const Cluster cluster = load_cluster("dgx-h800-x" + std::to_string(nodes));
    const Experts experts = std::get<Transformer>(one_mixture(nodes).shape).block.experts;
    const double copies = parts_of_token({.experts = experts.count,
                                          .chosen = experts.chosen,
                                          .groups = experts.groups,
                                          .chosen_groups = experts.chosen_groups,
                                          .best_of_group = experts.best_of_group,
                                          .ranks = 8 * nodes,
                                          .parts = nodes == 1 ? 8 : nodes});
    const double there = 4096 * copies * 7168 * (1 + 4.0 / 128), back = 4096 * copies * 7168 * 2;
    const double sent = there / 1e9 / time_of(job, cluster, {"dispatch_once_all_to_all", "dispatch_all_to_all"}),
                 returned = back / 1e9 / time_of(job, cluster, {"combine_once_all_to_all", "combine_all_to_all"});
    printf("%d ranks: %.1f and %.1f GB/s, published %.0f and %.0f\n", 8 * nodes, sent, returned, dispatch, combine);
    EXPECT_NEAR(sent / dispatch, 1, 0.16) << nodes;
    EXPECT_NEAR(returned / combine, 1, 0.16) << nodes;
  }
}

// The same tokens in 16 bits on H100 by HybridEP (arXiv:2603.07685): rows from 16 ranks 1.485 ms, to 64 ranks 4.626 ms.
TEST(ForwardedRows, PublishedTimesOfHybridEp) {
  const auto time = [](int nodes, const std::set<std::string>& names) {
    const Lowered job = of_nodes(nodes, Dispatcher::OncePerNode, Codec::None, "megatron-bridge", "dgx-h100");
    return 1e3 * time_of(job, load_cluster("dgx-h100-x" + std::to_string(nodes)), names);
  };
  EXPECT_NEAR(time(2, {"combine_once_all_to_all", "combine_all_to_all"}) / 1.485, 1, 0.1);
  EXPECT_NEAR(time(8, {"dispatch_once_all_to_all", "dispatch_all_to_all"}) / 4.626, 1, 0.1);
}

}  // namespace
}  // namespace foreshard::forwarded_rows_test
