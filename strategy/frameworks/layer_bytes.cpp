#include "strategy/frameworks/layer_bytes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "strategy/recompute/keep_rule.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

namespace {

class LayerMeasure {
 public:
  LayerMeasure(const LayerGraph& layer, const Strategy& strategy, const MemoryTraits& traits, bool copies, bool full)
      : layer_(layer), strategy_(strategy), traits_(traits), copies_(copies) {
    const KeepRule plain = keep_rule(layer, {});
    const KeepRule rule = keep_rule(layer, recomputed_by(strategy.recompute, full));
    bytes_.kept = stored(rule) + (full && rule.whole_layer ? 0 : extras(rule));
    bytes_.left = left({});
    const Largest largest = gradients();
    bytes_.backward = largest.bytes;
    bytes_.waiting = left(largest.op);
    if (rule.whole_layer) bytes_.backward += stored(plain) + extras(plain) - stored(rule);
    for (const Operator& op : layer.operators)
      if (is<ops::CrossEntropy>(op.op) && !op.communication && op.inputs.front() >= 0) add_loss(op);
    bytes_.deferred = deferred();
  }
  LayerBytes take() const { return bytes_; }

 private:
  const Value& value(int index) const { return layer_.values[static_cast<std::size_t>(index)]; }
  bool of_loss(std::size_t index) const {
    for (const Operator& op : layer_.operators)
      if (is<ops::CrossEntropy>(op.op) && !op.communication)
        for (const int made : op.outputs)
          if (static_cast<std::size_t>(made) == index) return true;
    return false;
  }
  double stored(const KeepRule& rule) const {
    double sum = 0;
    for (std::size_t v = 0; v < rule.stored.size(); ++v)
      if (rule.stored[v] && !of_loss(v) && !made_again(rule, v)) sum += kept_size(rule, v);
    return sum;
  }
  // Whether the value is the result of an attention that is recomputed, in a framework that recomputes the result, too.
  bool made_again(const KeepRule& rule, std::size_t kept) const {
    if (!traits_.remakes_attention) return false;
    for (std::size_t i = 0; i < layer_.operators.size(); ++i) {
      const Operator& op = layer_.operators[i];
      if (op.module != "attention" || op.communication || !rule.redone[i]) continue;
      if (std::ranges::any_of(op.outputs, [&](int made) { return real(rule, made) == kept; })) return true;
    }
    return false;
  }

  // Bytes of a value that is kept. Products in 8 or 4 bits keep a copy of it in their code; the value itself is kept if another
  // operator needs it.
  double kept_size(const KeepRule& rule, std::size_t kept) const {
    const double whole = size(layer_.values[kept]);
    if (!is_code(strategy_.precision) || !traits_.fp8_inputs || layer_.kind == "head") return whole;
    bool product = false, other = false;
    for (std::size_t i = 0; i < layer_.operators.size(); ++i) {
      const Operator& op = layer_.operators[i];
      for (const int saved : op.saved)
        if (real(rule, saved) == kept) (is_weight_product(op) ? product : other) = true;
      if (!rule.redone[i] || op.inputs.empty() || real(rule, op.inputs[0]) != kept) continue;
      // Gathered again in the backward: the shard that is kept becomes a product's input.
      if (op.communication && !op.outputs.empty())
        product = true;
      else
        other = true;
    }
    if (!product) return whole;
    return (other ? whole : 0) + count(layer_.values[kept]) * coded_size(strategy_.precision);
  }
  static std::size_t real(const KeepRule& rule, int value) {
    return static_cast<std::size_t>(rule.same_as[static_cast<std::size_t>(value)]);
  }

  // Bytes that the framework's operators keep beside the values of our graph, without operators that are recomputed.
  double extras(const KeepRule& rule) const {
    double sum = 0;
    for (std::size_t i = 0; i < layer_.operators.size(); ++i) {
      const Operator& op = layer_.operators[i];
      if (op.communication || rule.redone[i]) continue;
      if (is<ops::Norm>(op.op)) sum += traits_.norm_bytes * count(value(op.inputs[0]));
      if (is<ops::Activation>(op.op)) sum += traits_.activation_bytes * count(value(op.outputs[0]));
      if (is<ops::Softmax>(op.op)) sum += traits_.scores.kept * count(value(op.outputs[0]));
      if (op.name == "qkv")
        sum += traits_.projections.query_key * queries_and_keys(op) + traits_.projections.key_value * keys_and_values(op);
      if (is<ops::Attention>(op.op) && copies_ && strategy_.batch.micro > 1) sum += size(value(op.outputs[0]));
    }
    return sum;
  }

  // Elements of queries and keys: queries have the size of the attention's result ("context"), and keys half of what remains.
  double queries_and_keys(const Operator& projection) const {
    const double made = projected(projection);
    return made - (made - queries()) / 2;
  }
  double keys_and_values(const Operator& projection) const { return projected(projection) - queries(); }
  double projected(const Operator& projection) const {
    double all = 0;
    for (const int made : projection.outputs) all += count(value(made));
    return all;
  }
  double queries() const {
    for (const Value& v : layer_.values)
      if (v.name == "context") return count(v);
    return 0;
  }

  // Inputs of products with weights and gradients of their results: 32 s b h bytes per layer of GPT (Qi et al. 2024, table 1, column W),
  // 14 of inputs and 18 of gradients. `behind`: only of products behind this operator, without what it or an earlier operator keeps.
  double left(std::optional<std::size_t> behind) const {
    std::vector<char> seen(layer_.values.size(), 0);
    double sum = 0;
    for (std::size_t i = 0; i < layer_.operators.size(); ++i) {
      const Operator& op = layer_.operators[i];
      const bool counts = is_weight_product(op) && (!behind || i > *behind);
      if (behind && i <= *behind)
        for (const int v : op.saved) seen[static_cast<std::size_t>(v)] = 1;
      if (!counts) continue;
      for (const auto* list : {&op.saved, &op.outputs})
        for (const int v : *list)
          if (!std::exchange(seen[static_cast<std::size_t>(v)], 1)) sum += size(value(v));
    }
    return sum;
  }

  // The most bytes of gradients of one operator's inputs and outputs, plus the gradient of the layer's output (the residual stream).
  struct Largest {
    double bytes = 0;
    std::size_t op = 0;
  };
  Largest gradients() const {
    Largest most;
    for (std::size_t i = 0; i < layer_.operators.size(); ++i) {
      const Operator& op = layer_.operators[i];
      double sum = 0;
      for (const auto* list : {&op.inputs, &op.outputs})
        for (const int v : *list)
          if (value(v).needs_grad) sum += size(value(v)) / (is_logits(v) ? parts() : 1);
      if (is<ops::Softmax>(op.op)) sum = std::max(sum, traits_.scores.scratch * count(value(op.outputs[0])));
      if (!is<ops::CrossEntropy>(op.op) && sum >= most.bytes) most = {.bytes = sum, .op = i};
    }
    most.bytes += layer_.output >= 0 ? size(value(layer_.output)) : 0;
    return most;
  }

  bool is_logits(int v) const {
    return std::any_of(layer_.operators.begin(), layer_.operators.end(), [&](const Operator& op) {
      return is<ops::CrossEntropy>(op.op) && !op.communication && !op.inputs.empty() && op.inputs[0] == v;
    });
  }
  double parts() const {
    if (!traits_.logits.parts_by_width) return traits_.logits.parts;
    for (const Operator& op : layer_.operators)
      if (is_weight_product(op) && is_logits(op.outputs[0]))
        return std::max(1.0, static_cast<double>(op.shapes[0].dims[2]) / static_cast<double>(op.shapes[0].dims[3]));
    return 1;
  }
  double deferred() const {
    for (const Operator& op : layer_.operators)
      if (is_weight_product(op) && is_logits(op.outputs[0])) return size(value(op.inputs[0])) + size(value(op.outputs[0]));
    return 0;
  }

  void add_loss(const Operator& op) {
    const Value& logits = value(op.inputs[0]);
    if (logits.name.find("vocab") == std::string::npos) return;
    const double ranks = strategy_.tp;
    const bool gathers = ranks > 1 && traits_.logits.gathered_bytes > 0;
    const double buffers =
        strategy_.zero.stage < 2 ? traits_.logits.buffered * static_cast<double>(size_of(DType::F32).value) : 0;
    bytes_.loss = std::max(
        bytes_.loss,
        gathers ? (traits_.logits.gathered_bytes * ranks + static_cast<double>(size_of(logits.dtype).value)) * count(logits)
                : (traits_.logits.bytes / parts() + buffers) * count(logits));
    bytes_.held = (traits_.logits.held_bytes * (traits_.logits.gathered_bytes > 0 ? ranks : 1) + buffers) * count(logits);
  }

  const LayerGraph& layer_;
  const Strategy& strategy_;
  const MemoryTraits& traits_;
  bool copies_;
  LayerBytes bytes_ = {};
};

}  // namespace

double parameter_elements(const Parameter& parameter) {
  double product = 1;
  for (const std::int64_t dim : parameter.local) product *= static_cast<double>(dim);
  return product;
}

bool is_weight_product(const Operator& op) { return !op.communication && is<ops::MatMul>(op.op) && !op.weights.empty(); }

LayerBytes layer_bytes(const LayerGraph& layer, const Strategy& strategy, const MemoryTraits& traits, bool copies, bool full) {
  return LayerMeasure(layer, strategy, traits, copies, full).take();
}

}  // namespace foreshard
