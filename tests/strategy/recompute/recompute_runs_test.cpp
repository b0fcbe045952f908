// The order of runs under a schedule, and the lives of values in it, by hand; what lower makes of the options.
#include "strategy/recompute/recompute_runs.h"

#include <algorithm>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/estimate/estimate.h"
#include "strategy/tune/tune.h"
#include "tests/strategy/support_lower.h"
#include "tests/strategy/support_recompute_exact.h"

namespace foreshard::recompute_runs_test {

namespace {

// One operator that turns x into y and whose backward reads x.
LayerGraph one_operator() {
  LayerGraph layer{
      .kind = "one", .values = {{.name = "x", .bytes = {8}}, {.name = "y", .bytes = {8}}}, .input = 0, .output = 1};
  layer.operators = {{.name = "f", .op = ops::Activation{}, .inputs = {0}, .outputs = {1}, .saved = {0}}};
  return layer;
}

std::string text(const StageRuns& stage) {
  std::string all;
  for (std::size_t k = 0; k < stage.runs.size(); ++k) {
    const OpRun& run = stage.runs[k];
    all += (static_cast<int>(k) == stage.turn ? "| " : "") + std::string(run.backward ? "b" : "f") + std::to_string(run.layer) +
           "." + std::to_string(run.op) + " ";
  }
  return all;
}

using enum RecomputeWork;

}  // namespace

// Three layers of which only the input is kept: F0 F1 F2 B2, F0 F1 B1, F0 B0. The last forward of each way back makes a value that
// nobody reads, so it does not run: B1 reads the output of layer 0.
TEST(RecomputeRuns, NothingIsMadeThatNobodyReads) {
  const LayerGraph layer = one_operator();
  const StageLayers layers = {&layer, &layer, &layer};
  const StageRuns stage = runs_of_chain(layers, {{Forward, 0},
                                                 {Forward, 1},
                                                 {ForwardKeepAll, 2},
                                                 {Backward, 2},
                                                 {Forward, 0},
                                                 {ForwardKeepAll, 1},
                                                 {Backward, 1},
                                                 {ForwardKeepAll, 0},
                                                 {Backward, 0}});
  EXPECT_EQ(text(stage), "f0.0 f1.0 f2.0 | b2.0 f0.0 b1.0 b0.0 ");
  const std::vector<std::vector<int>> names(3, {0, 1});
  const RunLives lives = lives_of(layers, names, stage);
  const std::vector<ValueLife> expected = {{0, 0, -1, 6}, {0, 1, 0, 1}, {1, 1, 1, 3}, {2, 1, 2, 2}, {0, 1, 4, 5}};
  EXPECT_EQ(lives.all, expected);  // input, x1, x2 across the turn, y, x1 again
  EXPECT_EQ(lives.again, (std::vector<char>{0, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(lives.ended[1], (std::vector<int>{1}));
  EXPECT_EQ(lives.ended[3], (std::vector<int>{2}));
}

// a -> b -> c and a + c: the sum saves nothing, b and c save what they read. Nodes a, b, c, sum, the turn, backwards of c and b.
// With a and b dropped, the backward of c makes both again and that of b has a still.
TEST(RecomputeRuns, AGraphRunsItsNodesBeforeTheirReaders) {
  LayerGraph layer{.kind = "branch",
                   .values = {{.name = "x", .bytes = {4}},
                              {.name = "a", .bytes = {4}},
                              {.name = "b", .bytes = {4}},
                              {.name = "c", .bytes = {4}},
                              {.name = "s", .bytes = {4}}},
                   .input = 0,
                   .output = 4};
  layer.operators = {{.name = "a", .op = ops::Activation{}, .inputs = {0}, .outputs = {1}},
                     {.name = "b", .op = ops::Activation{}, .inputs = {1}, .outputs = {2}, .saved = {1}},
                     {.name = "c", .op = ops::Activation{}, .inputs = {2}, .outputs = {3}, .saved = {2}},
                     {.name = "s", .op = ops::Add{}, .inputs = {1, 3}, .outputs = {4}}};
  const LayerNodes nodes = nodes_of(layer, {1, 1, 1, 1});
  ASSERT_EQ(nodes.nodes.size(), 7u);
  EXPECT_EQ(nodes.turn, 4);
  EXPECT_EQ(nodes.nodes[3].inputs, (std::vector<int>{0, 2}));
  EXPECT_EQ(nodes.nodes[5].inputs, (std::vector<int>{1}));
  EXPECT_EQ(nodes.nodes[6].inputs, (std::vector<int>{0, 5}));
  const std::vector<GraphSchedule> way = recompute_greedy_path(nodes.nodes, nodes.nodes[4].bytes);
  const auto runs = [&](const GraphSchedule& schedule) {
    const GraphSchedule longer = keep_longer(nodes.nodes, schedule, schedule.peak);
    return text(runs_of_graphs({&layer}, {&nodes}, {&longer}));
  };
  EXPECT_EQ(runs(way.front()), "f0.0 f0.1 f0.2 f0.3 | b0.3 b0.2 b0.1 b0.0 ");
  EXPECT_EQ(runs(way.back()), "f0.0 f0.1 f0.2 f0.3 | b0.3 f0.0 f0.1 b0.2 b0.1 b0.0 ");
  ASSERT_EQ(way.size(), 3u);
  EXPECT_EQ(kept_bytes(nodes, way.front()), 2 * kept_bytes(nodes, way[1]));
  EXPECT_EQ(kept_bytes(nodes, way.back()), 0);
}

// The borders of layers are articulation points of the whole model's graph: what Graph decides inside a layer, and Rotor about
// layers, leaves nothing out that passes a border by.
TEST(RecomputeRuns, LayersAreBlocksBetweenChainPoints) {
  for (const char* name : {"gpt2-124m", "resnet-50", "llama-2-7b"}) {
    const Model model = load_model(name);
    const OpGraph graph = build_op_graph(model, {.seq = 64});
    std::vector<RecomputeNode> nodes;
    std::vector<int> borders;
    int before = -1;  // the node that makes the layer's input
    for (const OpGraph::Layer& layer : graph.layers) {
      const LayerGraph& kind = graph.kinds[static_cast<std::size_t>(layer.kind)];
      std::vector<int> maker(kind.values.size(), -1);
      if (kind.input >= 0) maker[static_cast<std::size_t>(kind.input)] = before;
      for (const Operator& op : kind.operators) {
        RecomputeNode node{.seconds = 1, .bytes = 1};
        for (const int value : op.inputs)
          if (maker[static_cast<std::size_t>(value)] >= 0) node.inputs.push_back(maker[static_cast<std::size_t>(value)]);
        for (const int value : op.outputs) maker[static_cast<std::size_t>(value)] = static_cast<int>(nodes.size());
        nodes.push_back(node);
      }
      if (kind.output < 0) continue;
      before = maker[static_cast<std::size_t>(kind.output)];
      borders.push_back(before);
    }
    const std::vector<int> points = chain_points(nodes);
    ASSERT_GE(borders.size(), 10u) << name;
    for (const int border : borders)  // the first node of all cuts nothing off
      EXPECT_TRUE(border == 0 || std::binary_search(points.begin(), points.end(), border)) << name << " " << border;
  }
}

// Less memory never makes a schedule faster; what is free is filled, so that rotor is not slower than whole layers by number, and
// operators not than layers.
TEST(RecomputeRuns, SchedulesFillTheMemoryThatIsFree) {
  const Model model = load_model("llama-2-7b");
  const Cluster cluster = load_cluster("dgx-a100");
  double before = 0;
  for (const double reserve : {0.06, 0.25, 0.4, 0.5}) {
    Strategy s{
        .dp = 4, .tp = 2, .batch = {.micro = 8, .global = 32}, .zero = {.stage = 1}, .device_memory = {.reserve = reserve}};
    const auto seconds = [&](const char* text) {
      s.recompute = parse_recompute(text, "test");
      const auto answer = tuned_plan(model, cluster, s);
      EXPECT_TRUE(std::holds_alternative<Lowered>(answer)) << std::get<Infeasible>(answer).reason;
      return refine(std::get<Lowered>(answer), cluster).time.value;
    };
    const double by_number = seconds("auto"), rotor = seconds("rotor"), graph = seconds("graph");
    EXPECT_LE(rotor, by_number) << reserve;
    EXPECT_LE(graph, rotor) << reserve;
    EXPECT_GE(rotor, before) << reserve;
    before = rotor;
  }
}

TEST(RecomputeRuns, WhatCannotBeIsRefused) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy s{.dp = 1, .pp = 2, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.global = 4}};
  s.recompute = parse_recompute("rotor:4GiB", "test");
  EXPECT_EQ(refused(model, cluster, s).reason, "recompute rotor:4GiB needs whole backwards, schedule zb-h1 splits them");
  s.pipeline.schedule = Schedule::OneFOneB;
  s.recompute = parse_recompute("rotor:1MiB", "test");
  const Infeasible small = refused(model, cluster, s);
  EXPECT_TRUE(small.reason.starts_with("recompute rotor:1MiB is too little: the activations of pipeline rank 0 need at least "))
      << small.reason;
  s.recompute = parse_recompute(small.would_help.front().substr(std::string("--recompute ").size()), "test");
  EXPECT_TRUE(std::holds_alternative<Lowered>(tuned_plan(model, cluster, s)) ||
              std::get<Infeasible>(tuned_plan(model, cluster, s)).reason.find("rank 1") != std::string::npos);
}

}  // namespace foreshard::recompute_runs_test
