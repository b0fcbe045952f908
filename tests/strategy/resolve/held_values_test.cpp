// The values of a stage as a job of the tensor planners, and vDNN's answer as moves.
#include "strategy/resolve/held_values.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/cluster_file/cluster_file.h"
#include "strategy/resolve/resolve.h"

namespace foreshard::held_values_test {
namespace {

// Layers of the op graph: sample conv1 relu1 | conv2 relu2 | linear loss; operators 0 to 6, the backward of operator i is number 13 - i.
Model small_network() {
  LayerList list{.input = {3, 8, 8}, .classes = 5};
  list.layers = {{.name = "conv1", .op = LayerOp::Conv2d, .features = 4, .kernel = 3, .padding = 1},
                 {.name = "relu1", .op = LayerOp::Relu},
                 {.name = "conv2", .op = LayerOp::Conv2d, .features = 4, .kernel = 3, .padding = 1},
                 {.name = "relu2", .op = LayerOp::Relu},
                 {.name = "flat", .op = LayerOp::Flatten},
                 {.name = "fc", .op = LayerOp::Linear, .features = 5}};
  return {.name = "small", .shape = list};
}

struct Small {
  explicit Small(OffloadedActivations what = OffloadedActivations::None, const char* recompute = "none") {
    const Model model = small_network();
    Strategy asked{.dp = 1, .batch = {.micro = 2, .global = 4}, .recompute = parse_recompute(recompute, "test")};
    asked.offload.activations = what;
    auto resolved = resolve(model, load_cluster("dgx-a100"), asked);
    if (const auto* refused = std::get_if<Infeasible>(&resolved)) throw Error(refused->reason);
    strategy = std::get<Strategy>(std::move(resolved));
    graph = std::get<OpGraph>(graph_of(model, strategy));
    tables = std::get<StrategyTables>(tables_of(model, strategy, graph));
    held = held_values(graph, tables.layout.layers, tables.activations, 0);
  }
  const HeldTensor* tensor(int layer, int value) const {
    for (std::size_t t = 0; t < held.values.size(); ++t)
      if (held.values[t].layer == layer && held.values[t].value == value) return &held.job.tensors[t];
    return nullptr;
  }
  int output(int layer) const {
    return graph.kinds[static_cast<std::size_t>(graph.layers[static_cast<std::size_t>(layer)].kind)].output;
  }

  Strategy strategy = {};
  OpGraph graph = {};
  StrategyTables tables = {};
  HeldValues held = {};
};

void expect_uses(const HeldTensor* tensor, int made, int read, int again, int until, bool convolution) {
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->made_by, made);
  EXPECT_EQ(tensor->last_forward_use, read);
  EXPECT_EQ(tensor->used_again_by, again);
  EXPECT_EQ(tensor->read_until, until);
  EXPECT_EQ(tensor->convolution_input, convolution);
}

}  // namespace

// A convolution's backward reads its input, that of a relu its result: the output of relu1 is read by both. Bytes: 2 samples in 16 bits.
TEST(HeldValues, WhoReadsWhat) {
  const Small small;
  ASSERT_EQ(small.held.operators.size(), 7u);
  expect_uses(small.tensor(0, 0), 0, 1, 12, 12, true);  // the sample
  expect_uses(small.tensor(0, small.output(0)), 2, 3, 10, 11, true);
  expect_uses(small.tensor(1, small.output(1)), 4, 5, 8, 9, false);
  EXPECT_EQ(small.tensor(0, 0)->bytes, Bytes{2 * 3 * 64 * 2});
  EXPECT_EQ(small.tensor(0, small.output(0))->bytes, Bytes{2 * 4 * 64 * 2});
}

// Layer 1 runs again as a whole before its backward begins with relu2's, number 9, and needs relu1's result for it.
TEST(HeldValues, WhatRunsAgainReadsEarlier) {
  const Small small(OffloadedActivations::None, "full");
  const HeldTensor* input = small.tensor(0, small.output(0));
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->used_again_by, 9);
}

// The sample goes with conv1 and returns an operator before it, with the backward of relu1; the input of conv2 with that of relu2. That of
// the
// linear layer stays. The value that the backward reads first comes first.
TEST(HeldValues, VdnnMovesInputsOfConvolutions) {
  const Small small(OffloadedActivations::Vdnn);
  const std::vector<ValueMove> expected = {
      {.layer = 0, .value = small.output(0), .leaves = {1, 0}, .returns = {1, 1}, .computes_wait_back = true},
      {.layer = 0, .value = 0, .leaves = {0, 1}, .returns = {0, 2}, .computes_wait_back = true}};
  EXPECT_EQ(small.tables.activations.moves, expected);
}

// A copy that is not done when the forward ends is waited for there; one that the planner begins in the forward begins with the backward.
TEST(HeldValues, MovesStayWithinTheirPass) {
  Small small;
  TensorPlan plan{.choices = std::vector<TensorChoice>(small.held.job.tensors.size())};
  const auto sample = static_cast<std::size_t>(small.tensor(0, 0) - small.held.job.tensors.data());
  plan.choices[sample].fetched_at = 5;
  for (int i = 0; i < 14; ++i) plan.timing.starts.push_back({static_cast<double>(i)});
  plan.timing.sent.assign(plan.choices.size(), Seconds{});
  const auto leaves = [&](double sent) {
    plan.timing.sent[sample] = {sent};
    return moves_of(small.held, plan, Space::Nvme).front().leaves;
  };
  EXPECT_EQ(leaves(2), (ValueMove::At{0, 1}));  // conv1, number 1, ends at 2
  EXPECT_EQ(leaves(3.5), (ValueMove::At{1, 0}));
  EXPECT_EQ(leaves(100), (ValueMove::At{2, 1}));
  EXPECT_EQ(moves_of(small.held, plan, Space::Nvme).front().returns, (ValueMove::At{2, 1}));
  EXPECT_EQ(moves_of(small.held, plan, Space::Nvme).front().home, Space::Nvme);
}

}  // namespace foreshard::held_values_test
