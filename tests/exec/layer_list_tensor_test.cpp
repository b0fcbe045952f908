// Layer lists under tensor parallelism: pairs of linear layers are cut by columns and by rows, and train as on one device.
#include <gtest/gtest.h>

#include <map>

#include "core/check/check_plan.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "core/graph/op_graph_layer_list.h"
#include "core/network/network.h"
#include "strategy/tune/tune.h"
#include "tests/exec/training.h"

namespace foreshard::layer_list_tensor_test {
namespace {

// A whole layer whose output both a pair and the sum behind it read; then a pair without biases, and a layer alone.
Model with_residual(bool labels) {
  using enum LayerOp;
  LayerList list{.input = {8}, .classes = labels ? 12 : 0};
  list.layers = {{.name = "in", .op = Linear, .features = 12, .bias = true},
                 {.name = "a", .op = Linear, .features = 16, .bias = true},
                 {.name = "a.relu", .op = Relu},
                 {.name = "b", .op = Linear, .features = 12, .bias = true},
                 {.name = "sum", .op = Add, .inputs = {"b", "in"}},
                 {.name = "c", .op = Linear, .features = 20},
                 {.name = "c.relu", .op = Relu},
                 {.name = "d", .op = Linear, .features = 8},
                 {.name = "d.relu", .op = Relu},
                 {.name = "out", .op = Linear, .features = 12, .bias = true}};
  return {.name = "with-residual", .shape = std::move(list)};
}

void expect_equal(const Model& model, Strategy strategy) {
  const bool residual = model.name == "with-residual";
  if (strategy.pp == 2)
    strategy.pipeline.layer_split = residual ? "3,2" : "1,3";  // inside a pair: a part of the features goes on
  const Execution one =
      run(lowered(model, in_double({.batch = {.micro = 2, .global = strategy.batch.global}, .optimizer = strategy.optimizer})),
          training(3));
  const Plan plan = lowered(model, in_double(strategy));
  const auto defects = check_plan(plan);
  ASSERT_TRUE(defects.empty()) << name_of(strategy) << defects[0].what;
  const Execution cut = run(plan, training(3));
  EXPECT_LE(difference(cut, one).largest(), 1e-12)
      << model.name << " " << name_of(strategy) << " " << difference(cut, one).worst;
}

std::vector<Strategy> strategies() {
  Strategy clipped{.dp = 2, .tp = 2, .batch = {.micro = 4}};  // never as many samples as ranks: parts and rows look alike then
  clipped.optimizer.clip_norm = 0.1;
  return {{.tp = 2, .batch = {.micro = 4}},
          {.tp = 4, .batch = {.micro = 2}},
          {.dp = 2, .tp = 2, .batch = {.micro = 4}, .zero = {.stage = 1}},
          {.dp = 2, .tp = 2, .batch = {.micro = 1}, .zero = {.stage = 3}},
          {.tp = 2, .pp = 2, .batch = {.micro = 1}},
          clipped};
}

TEST(LayerListTensor, TrainsAsOnOneDevice) {
  for (const Strategy& strategy : strategies()) {
    expect_equal(tiny_mlp(), strategy);
    for (const bool labels : {true, false}) expect_equal(with_residual(labels), strategy);
  }
}

// in gathered | a columns, b rows | c columns, d rows | out gathered, or whole where its features do not divide
TEST(LayerListTensor, PairsAreCutTheRestIsGathered) {
  Model model = with_residual(true);
  auto& list = std::get<LayerList>(model.shape);
  LayerCuts cuts = layer_cuts(list, 4);
  EXPECT_EQ(cuts.of, (std::vector<int>{0, 0, -1, 1, -1, 0, -1, 1, -1, 0}));
  EXPECT_EQ(cuts.split, (std::vector<char>{0, 1, 1, 0, 0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(cuts.gathered, (std::vector<char>{1, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  list.classes = list.layers.back().features = 7;
  cuts = layer_cuts(list, 4);
  EXPECT_EQ(cuts.of.back(), -1);
  EXPECT_FALSE(cuts.gathered.back());
}

// x [4, 5] w [5, 8] by columns on two ranks: 16 elements of the result forward, 20 of the input's gradient backward.
TEST(LayerListTensor, TheToyProductMovesWhatItsLayoutsSay) {
  const Model toy = load_model("toy-matmul");
  const Strategy strategy{.tp = 2, .batch = {.micro = 4, .global = 4}};
  expect_equal(toy, strategy);
  const Plan plan = lowered(toy, in_double(strategy));
  std::map<std::string, double> elements;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      if (const auto* what = std::get_if<Collective>(&run.what))
        elements[run.name] += collective_volume(what->kind, what->algorithm, what->bytes, 2).bytes / 8;
  EXPECT_EQ(elements, (std::map<std::string, double>{{"linear1_gather", 16}, {"linear1_grad", 20}}));
}

// Without the sum of its rows' partial products a plan is refused, and so is one without the sum of the input's gradient.
TEST(LayerListTensor, CheckPlanMissesTheSums) {
  const Plan plan = lowered(tiny_mlp(), in_double({.tp = 2, .batch = {.micro = 2}}));
  int sums = 0;
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i) {
      if (!std::holds_alternative<Collective>(plan.segments[s].instructions[i].what)) continue;
      Plan without = plan;
      without.segments[s].instructions[i].what = Mark{};
      EXPECT_FALSE(check_plan(without).empty()) << plan.segments[s].instructions[i].name;
      ++sums;
    }
  EXPECT_GE(sums, 3);  // two forward, one backward: the samples need no gradient
}

std::string refusal(const Model& model, int tp) {
  const auto answer = tuned_plan(model, load_cluster("dgx-a100"), in_double({.tp = tp, .batch = {.micro = 2}}));
  return std::holds_alternative<Infeasible>(answer) ? std::get<Infeasible>(answer).reason : "lowered";
}

TEST(LayerListTensor, WhatCannotBeCutIsRefusedByName) {
  EXPECT_EQ(refusal(tiny_cnn(), 2),
            "tp 2 cuts linear layers; " + std::get<LayerList>(tiny_cnn().shape).layers[0].name + " is a convolution");
  EXPECT_EQ(refusal(with_residual(true), 8), "tp 8 does not divide the 20 features of c");
  EXPECT_EQ(refusal(load_model("toy-matmul"), 3), "tp 3 divides the features of no linear layer");
}

}  // namespace
}  // namespace foreshard::layer_list_tensor_test
