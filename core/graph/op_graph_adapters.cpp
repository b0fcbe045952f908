// Low-rank adapters beside linear layers, and what frozen parameters mean for the backward.
//
//   x -> base -----------------------> y --+
//   x -> A -> [scale] -> B ----------> z --+--> sum
//
// Where tensor-parallel ranks share the rows of the base's weights, they share those of B, and each has all of A; where they share its columns,
// they share those of A, and each has all of B (as in PEFT, tuners/lora/tp_layer.py). No activation is sent in addition: z is a partial sum
// where y is, and so is the gradient of x. The gradient of the whole matrix is a partial sum over the ranks.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/graph/op_graph_transformer.h"

namespace foreshard {

bool LayerBuilder::adapts(const Linear& what) const {
  if (!sharding_.lora.any() || what.adapter) return false;
  return what.module == "qkv" || what.module == "projection" ||
         (what.module == "mlp" && sharding_.lora.targets == AdapterTargets::All);
}

// A begins as in PEFT: uniform in +-1 / sqrt(in), here normal with the same deviation. B begins at zero, so that training begins with the base.
std::vector<int> LayerBuilder::adapted(const Linear& what, int x, const std::vector<int>& y) {
  const std::int64_t rank = sharding_.lora.rank;
  Dims narrow = at(x).dims;
  narrow.back() = rank;
  const Linear first = {.name = what.name + "_lora_a",
                        .module = what.module,
                        .in = what.in,
                        .out = rank,
                        .split = what.split == 1 ? 1 : -1,
                        .init = "normal(" + number(1 / std::sqrt(3.0 * static_cast<double>(what.in))) + ")",
                        .adapter = true};
  const Linear second = {.name = what.name + "_lora_b",
                         .module = what.module,
                         .in = rank,
                         .out = what.out,
                         .split = what.split == 0 ? 0 : -1,
                         .block_rows = what.block_rows,
                         .init = "zeros",
                         .adapter = true};
  const int scaled = scale(what.name + "_lora_scale", sharding_.lora.scale(), linear(first, x, std::move(narrow)));
  std::vector<Dims> dims;
  std::vector<std::string> names;
  for (const int part : y) {
    dims.push_back(at(part).dims);
    names.push_back(what.name + "_lora_b_out" + (y.size() > 1 ? std::to_string(names.size()) : ""));
  }
  const std::vector<int> z = linear(second, scaled, dims, std::move(names));
  std::vector<int> sums;
  for (std::size_t i = 0; i < y.size(); ++i) {
    sums.push_back(sum(what.name + "_lora_sum" + (y.size() > 1 ? std::to_string(i) : ""), y[i], z[i]));
    layer_.operators.back().module = what.module;
  }
  return sums;
}

void LayerBuilder::settle_gradients(Operator& op) {
  const auto has_gradient = [&](int value) { return at(value).needs_grad; };
  const bool below = std::ranges::any_of(op.inputs, has_gradient);
  const bool trained =
      std::ranges::any_of(op.weights, [&](int weight) { return !layer_.parameters[static_cast<std::size_t>(weight)].frozen; });
  op.frozen = !op.weights.empty() && !trained;
  if (op.frozen) op.weight_grad = {};
  if (!below) op.input_grad = {};
  if (!below && !trained) {
    for (const int value : op.outputs) layer_.values[static_cast<std::size_t>(value)].needs_grad = false;
    op.saved.clear();
  }
  if (op.frozen && is<ops::MatMul>(op.op) && !op.communication)
    op.saved.clear();  // its input is for the gradient of its weights
}

std::int64_t adapter_elements(const Model& model, const Adapters& lora) {
  const auto* t = std::get_if<Transformer>(&model.shape);
  if (!t || !lora.any()) return 0;
  const std::int64_t queries = t->heads * t->head_dim, rows = queries + 2 * t->kv_heads * t->head_dim;
  std::int64_t widths = (t->hidden + rows) + (queries + t->hidden);
  if (lora.targets == AdapterTargets::All)
    widths += (t->hidden + (is_gated(t->activation) ? 2 : 1) * t->ffn_hidden) + (t->ffn_hidden + t->hidden);
  return t->layers * lora.rank * widths;
}

}  // namespace foreshard
