#include "core/graph/op_graph_layer_list.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/base/error.h"
#include "core/graph/op_graph_saved.h"

namespace foreshard::op_graph_layer_list_test {
namespace {

std::int64_t parameters_of(const OpGraph& graph) {
  std::int64_t sum = 0;
  for (const auto& layer : graph.layers) {
    for (const Parameter& p : graph.kinds[static_cast<std::size_t>(layer.kind)].parameters) {
      if (p.tied) continue;
      std::int64_t n = 1;
      for (const std::int64_t d : p.shape) n *= d;
      sum += n;
    }
  }
  return sum;
}

struct PhaseFlops {
  double forward = 0, input_grad = 0, weight_grad = 0;
};
PhaseFlops flops_of(const OpGraph& graph) {
  PhaseFlops sum;
  for (const auto& layer : graph.layers) {
    for (const Operator& op : graph.kinds[static_cast<std::size_t>(layer.kind)].operators) {
      sum.forward += op.forward.flops.value;
      sum.input_grad += op.input_grad.flops.value;
      sum.weight_grad += op.weight_grad.flops.value;
    }
  }
  return sum;
}

// Founding example: x 4 x 5, w 5 x 8: 2 * 4 * 5 * 8 = 320 each.
TEST(LayerListGraph, ToyProduct) {
  const OpGraph graph = build_op_graph(load_model("toy-matmul"), {.micro_batch = 4});
  const PhaseFlops flops = flops_of(graph);
  EXPECT_EQ(flops.forward, 320);
  EXPECT_EQ(flops.weight_grad, 320);
  EXPECT_EQ(flops.input_grad, 320);
  ASSERT_EQ(graph.layers.size(), 1u);
  EXPECT_EQ(graph.layers[0].name, "matmul");
  EXPECT_EQ(graph.kinds[0].parameters[0].name, "weight");
  EXPECT_EQ(model_flops_per_sample(load_model("toy-matmul"), 0).value * 4, 960);
}

// ResNet-50: 4.089 G multiply-adds (He et al. 2015 give 3.8; the v1.5 stride adds), stem + 16 blocks + classifier. The
// first convolution needs no gradient of the picture: 2 * 64 * 112^2 * 147 less.
TEST(LayerListGraph, ResNet50) {
  const Model model = load_model("resnet-50");
  const OpGraph graph = build_op_graph(model, {.micro_batch = 2});
  EXPECT_EQ(graph.layers.size(), 18u);
  EXPECT_EQ(graph.layers[0].name, "conv1");
  EXPECT_EQ(graph.layers[1].name, "layer1.0");
  EXPECT_EQ(graph.layers[17].name, "fc");
  EXPECT_LT(graph.kinds.size(), 12u);  // blocks of one stage after its first are equal
  const PhaseFlops flops = flops_of(graph);
  EXPECT_NEAR(flops.forward / 2 / 2, 4.089e9, 0.001e9);
  EXPECT_EQ(flops.forward, flops.weight_grad);
  EXPECT_EQ(flops.forward - flops.input_grad, 2 * 2.0 * 64 * 112 * 112 * 147);
  EXPECT_EQ(flops.forward + flops.input_grad + flops.weight_grad, 2 * model_flops_per_sample(model, 0).value);
  EXPECT_EQ(parameters_of(graph), 25557032);
}

TEST(LayerListGraph, Vgg16) {
  const OpGraph graph = build_op_graph(load_model("vgg-16"), {.micro_batch = 1});
  EXPECT_EQ(graph.layers.size(), 16u);  // 13 convolutions, 3 linear layers
  EXPECT_NEAR(flops_of(graph).forward / 2, 15.47e9, 0.01e9);
  EXPECT_EQ(parameters_of(graph), 138357544);
}

// What a layer keeps: the input of the convolution and of each norm, the results of its relus.
TEST(LayerListGraph, KeptBytesOfTheStem) {
  const OpGraph graph = build_op_graph(load_model("resnet-50"), {.micro_batch = 1});
  const LayerGraph& stem = graph.kinds[0];
  const std::int64_t picture = 3 * 224 * 224, map = 64 * 112 * 112;
  EXPECT_EQ(kept_bytes(stem, retention(stem)).value, 2 * (picture + 2 * map));
}

TEST(LayerListGraph, ChainedLayersMeetInOneValueOfEqualSize) {
  for (const char* name : {"resnet-50", "vgg-16"}) {
    const OpGraph graph = build_op_graph(load_model(name), {.micro_batch = 2});
    for (std::size_t i = 0; i + 1 < graph.layers.size(); ++i) {
      const LayerGraph& a = graph.kinds[static_cast<std::size_t>(graph.layers[i].kind)];
      const LayerGraph& b = graph.kinds[static_cast<std::size_t>(graph.layers[i + 1].kind)];
      ASSERT_GE(a.output, 0);
      ASSERT_GE(b.input, 0);
      EXPECT_EQ(a.values[static_cast<std::size_t>(a.output)].bytes, b.values[static_cast<std::size_t>(b.input)].bytes);
    }
    EXPECT_EQ(graph.kinds[static_cast<std::size_t>(graph.layers.front().kind)].input, -1);
    EXPECT_EQ(graph.kinds[static_cast<std::size_t>(graph.layers.back().kind)].output, -1);
    std::set<std::string> tensors;
    for (const auto& layer : graph.layers) {
      for (const Parameter& p : graph.kinds[static_cast<std::size_t>(layer.kind)].parameters) {
        EXPECT_TRUE(tensors.insert(layer.name + "." + p.name).second) << layer.name << "." << p.name;
      }
    }
  }
}

// Against the obvious answer: walk the list, count the values that later entries still read.
TEST(LayerListGraph, CutsOfRandomGraphs) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const int n = 2 + static_cast<int>(random() % 14);
    LayerList list = {.input = {4, 8, 8}};
    std::vector<bool> read(static_cast<std::size_t>(n), false);
    for (int i = 0; i < n; ++i) {
      LayerSpec spec = {.name = "e" + std::to_string(i), .op = LayerOp::Relu};
      std::vector<int> open;  // entries that nobody reads yet
      for (int j = 0; j < i; ++j) {
        if (!read[static_cast<std::size_t>(j)]) open.push_back(j);
      }
      const auto use = [&](int j) {
        spec.inputs.push_back(j < 0 ? "input" : "e" + std::to_string(j));
        if (j >= 0) read[static_cast<std::size_t>(j)] = true;
      };
      if (i + 1 == n && open.size() > 1) {
        spec.op = LayerOp::Add;
        for (const int j : open) use(j);
      } else if (i + 1 == n) {
        use(open.front());
      } else if (i > 0 && random() % 3 == 0) {
        spec.op = LayerOp::Add;
        use(i - 1);
        use(static_cast<int>(random() % static_cast<unsigned>(i)) - 1);
      } else {
        if (random() % 2) spec = {.name = spec.name, .op = LayerOp::Conv2d, .features = 4, .kernel = 1};
        use(random() % 4 != 0 || i == 0 ? i - 1 : static_cast<int>(random() % static_cast<unsigned>(i)));
      }
      list.layers.push_back(spec);
    }
    const auto inputs = input_layers(list);
    std::vector<int> expected(static_cast<std::size_t>(n), 0);
    for (int i = 0, layer = 0; i < n; ++i) {
      if (i > 0 && list.layers[static_cast<std::size_t>(i)].op == LayerOp::Conv2d) {
        std::set<int> crossing;
        for (int j = i; j < n; ++j) {
          for (const int from : inputs[static_cast<std::size_t>(j)]) {
            if (from < i) crossing.insert(from);
          }
        }
        if (crossing == std::set<int>{i - 1}) ++layer;
      }
      expected[static_cast<std::size_t>(i)] = layer;
    }
    std::vector<int> found(static_cast<std::size_t>(n), -1);
    const auto chain = chain_layers(list);
    for (std::size_t l = 0; l < chain.size(); ++l) {
      for (const int e : chain[l]) found[static_cast<std::size_t>(e)] = static_cast<int>(l);
    }
    EXPECT_EQ(found, expected) << to_json(Model{.name = "random", .shape = list});
  }
}

TEST(LayerListGraph, TensorParallelismIsRefused) {
  EXPECT_THROW(build_op_graph(load_model("resnet-50"), {.tp = 2}), Error);
  EXPECT_THROW(build_op_graph(load_model("resnet-50"), {.cp = 2}), Error);
}

// Every shipped model: the graph's parameters are the model's.
TEST(OpGraphOfShippedModels, ParameterCounts) {
  for (const char* name : {"gpt2-124m", "gpt2-1.5b", "gpt3-175b", "megatron-1t", "turing-530b", "llama-2-7b", "llama-2-70b",
                           "llama-3-8b", "llama-3-70b", "llama-3-405b", "bert-large", "resnet-50", "vgg-16", "toy-matmul"}) {
    const Model model = load_model(name);
    for (const std::int64_t multiple : {1, 128}) {
      const OpGraph graph = build_op_graph(model, {.seq = 128, .vocab_multiple = multiple});
      EXPECT_EQ(parameters_of(graph), parameter_count(model, multiple)) << name;
    }
  }
}

}  // namespace
}  // namespace foreshard::op_graph_layer_list_test
