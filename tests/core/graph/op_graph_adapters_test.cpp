// Low-rank adapters in the operator graph: parameters, FLOPs, kept bytes and where gradients end, against closed forms.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>

#include "core/graph/op_graph.h"
#include "core/graph/op_graph_saved.h"
#include "core/model/model.h"
#include "core/op/adapters.h"

namespace foreshard::op_graph_adapters_test {
namespace {

struct Counts {
  std::int64_t trained = 0, frozen = 0;
};

std::int64_t elements(const Parameter& p) {
  return std::accumulate(p.shape.begin(), p.shape.end(), std::int64_t{1}, std::multiplies<>());
}

Counts counts(const OpGraph& graph) {
  Counts all;
  for (const OpGraph::Layer& layer : graph.layers)
    for (const Parameter& p : graph.kinds[static_cast<std::size_t>(layer.kind)].parameters)
      if (!p.tied) (p.frozen ? all.frozen : all.trained) += elements(p);
  return all;
}

struct Products {
  double forward = 0, inputs = 0, weights = 0;
};

Products products(const OpGraph& graph) {
  Products all;
  for (const OpGraph::Layer& layer : graph.layers)
    for (const Operator& op : graph.kinds[static_cast<std::size_t>(layer.kind)].operators)
      if (is<ops::MatMul>(op.op) && !op.communication)
        all.forward += op.forward.flops.value, all.inputs += op.input_grad.flops.value,
            all.weights += op.weight_grad.flops.value;
  return all;
}

const LayerGraph& kind_of(const OpGraph& graph, const std::string& name) {
  for (const LayerGraph& kind : graph.kinds)
    if (kind.kind == name) return kind;
  ADD_FAILURE() << "no layer of kind " << name;
  return graph.kinds.front();
}

const Operator& operator_of(const LayerGraph& layer, const std::string& name) {
  for (const Operator& op : layer.operators)
    if (op.name == name) return op;
  ADD_FAILURE() << "no operator " << name;
  return layer.operators.front();
}

// Of one layer of Llama 2: r (h + rows of queries, keys and values) + r (h + h), and r (h + 2 f) + r (f + h).
TEST(Adapters, ParametersOfLlama2) {
  const struct {
    const char* model;
    std::int64_t attention, all;
  } rows[] = {{"llama-2-7b", 32 * 16 * (4096 + 12288 + 4096 + 4096),
               32 * 16 * (4096 + 12288 + 4096 + 4096 + 4096 + 22016 + 11008 + 4096)},
              {"llama-2-70b", 44'564'480, 175'636'480}};
  for (const auto& row : rows)
    for (const AdapterTargets targets : {AdapterTargets::Attention, AdapterTargets::All})
      for (const int tp : {1, 8}) {
        const Model model = load_model(row.model);
        const Adapters lora = {.rank = 16, .targets = targets};
        const Counts found = counts(build_op_graph(model, {.seq = 512, .tp = tp, .lora = lora}));
        EXPECT_EQ(found.trained, targets == AdapterTargets::All ? row.all : row.attention) << row.model;
        EXPECT_EQ(found.frozen, parameter_count(model, tp)) << row.model;
        EXPECT_EQ(adapter_elements(model, lora), found.trained) << row.model;
      }
}

// Frozen products have no weight gradients, and below the first adapter nothing has a gradient: the lowest layer's product of queries, keys
// and values, and its adapter's A, have no input gradients.
TEST(Adapters, FlopsAreThoseOfTheAdaptersAndTheInputGradients) {
  const Model model = load_model("llama-2-7b");
  const double tokens = 1024, h = 4096, r = 16, qkv = 12288;
  const auto small = static_cast<double>(adapter_elements(model, {.rank = 16}));
  const double base = (static_cast<double>(parameter_count(model)) - 32000 * h - 65 * h);  // without embedding and norms
  for (const int tp : {1, 4}) {
    const Products found = products(build_op_graph(model, {.seq = 1024, .tp = tp, .lora = {.rank = 16}}));
    const double beside =
        (tp - 1.0) * 32 * 2 * r * h;  // each rank has all of A of the first product and all of B of the second
    EXPECT_NEAR(found.forward * tp, 2 * tokens * (base + small + beside), 1e-9 * found.forward);
    EXPECT_NEAR(found.weights * tp, 2 * tokens * (small + beside), 1e-9 * found.weights);
    EXPECT_NEAR(found.inputs * tp, 2 * tokens * (base + small + beside - qkv * h - tp * r * h), 1e-9 * found.inputs);
  }
  const Flops whole = model_flops_per_sample(model, 1024), tuned = model_flops_per_sample(model, 1024, 1, {.rank = 16});
  const double core = 12 * 32 * h * tokens * tokens;
  EXPECT_DOUBLE_EQ(whole.value, 6 * tokens * base + core);
  EXPECT_DOUBLE_EQ(tuned.value, 4 * tokens * base + 6 * tokens * small + core);
  EXPECT_DOUBLE_EQ(model_flops_per_sample(model, 1024, 1, {}, 256).value, 6 * tokens * base + core / 4);
}

TEST(Adapters, GradientsEndBelowTheFirstOne) {
  const OpGraph graph = build_op_graph(load_model("llama-2-7b"), {.seq = 256, .lora = {.rank = 8, .alpha = 16}});
  ASSERT_EQ(graph.kinds.size(), 4u);
  EXPECT_EQ(graph.layers[1].kind, 1);
  EXPECT_EQ(graph.layers[2].kind, 2);
  for (const Value& value : kind_of(graph, "embedding").values) EXPECT_FALSE(value.needs_grad) << value.name;
  const LayerGraph &lowest = kind_of(graph, "lowest_decoder"), &other = kind_of(graph, "decoder");
  EXPECT_EQ(operator_of(lowest, "norm1").input_grad, OpWork{});
  EXPECT_EQ(operator_of(lowest, "qkv").input_grad, OpWork{});
  EXPECT_EQ(operator_of(lowest, "qkv_lora_a").input_grad, OpWork{});
  EXPECT_FALSE(operator_of(lowest, "qkv_lora_a").weight_grad == OpWork{});
  EXPECT_FALSE(operator_of(other, "norm1").input_grad == OpWork{});
  EXPECT_FALSE(operator_of(other, "qkv").input_grad == OpWork{});
  EXPECT_TRUE(operator_of(other, "norm1").frozen);
  EXPECT_EQ(std::get<ops::Scale>(operator_of(other, "qkv_lora_scale").op).factor, 2);
  EXPECT_FALSE(lowest.values[static_cast<std::size_t>(lowest.input)].needs_grad);
  EXPECT_TRUE(lowest.values[static_cast<std::size_t>(lowest.output)].needs_grad);
}

// bf16 bytes per token of a layer of Llama 2 7B, flash attention, all kept: inputs of both norms 4 h, queries, keys and values and the
// context 8 h, log-sum-exp 4 a, gate and up 4 f. The input of the first product 2 h is kept for the adapter, that of the feed-forward's
// products 2 h and 2 f only where they have adapters; each adapter keeps 2 r between its products.
TEST(Adapters, InputsOfFrozenProductsAreNotKept) {
  const auto bytes = [](const Adapters& lora) {
    const OpGraph graph = build_op_graph(load_model("llama-2-7b"), {.seq = 4096, .lora = lora});
    const LayerGraph& layer = kind_of(graph, "decoder");
    return kept_bytes(layer, retention(layer)).value / 4096;
  };
  const std::int64_t h = 4096, f = 11008, a = 32, r = 16;
  EXPECT_EQ(bytes({}), 4 * h + 8 * h + 4 * a + 4 * f + 2 * h + 2 * h + 2 * f);
  EXPECT_EQ(bytes({.rank = 16}), 4 * h + 8 * h + 4 * a + 4 * f + 2 * h + 4 * r);
  EXPECT_EQ(bytes({.rank = 16, .targets = AdapterTargets::All}), bytes({}) + 8 * r);
}

// Without adapters no operator, value or parameter changes.
TEST(Adapters, NoneChangeNothing) {
  const Model model = load_model("llama-2-7b");
  EXPECT_EQ(build_op_graph(model, {.seq = 256, .tp = 2}),
            build_op_graph(model, {.seq = 256, .tp = 2, .lora = {.alpha = 4, .targets = AdapterTargets::All}}));
}

}  // namespace
}  // namespace foreshard::op_graph_adapters_test
