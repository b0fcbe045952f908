#include "strategy/resolve/held_values.h"

#include <algorithm>
#include <numeric>

#include "core/base/at.h"

namespace foreshard {

namespace {

class HeldListing {
 public:
  HeldListing(const OpGraph& graph, const StageLayout& layers, const ActivationPolicy& policy, int stage)
      : graph_(graph), first_(layers.first[at(stage)]), last_(layers.first[at(stage) + 1]) {
    for (int l = first_; l < last_; ++l) {
      const int row = policy.row_of(l);
      keeps_.push_back(keep_rule(layer(l), row < 0 ? Redone{} : policy.rows[at(row)].redone));
      first_op_.push_back(static_cast<int>(held_.operators.size()));
      for (int op = 0; op < static_cast<int>(layer(l).operators.size()); ++op) held_.operators.push_back({l, op});
    }
    held_.job.operations.resize(2 * held_.operators.size());
  }

  HeldValues all() {
    for (int l = first_; l < last_; ++l)
      for (int v = 0; v < static_cast<int>(layer(l).values.size()); ++v) add(l, v);
    return std::move(held_);
  }

 private:
  const LayerGraph& layer(int l) const { return graph_.kinds[at(graph_.layers[at(l)].kind)]; }
  const KeepRule& keep(int l) const { return keeps_[at(l - first_)]; }

  // What the operators of layer `l` do with the value that it knows as `v`.
  void note(int l, int v, HeldTensor& tensor) const {
    const LayerGraph& graph = layer(l);
    const KeepRule& rule = keep(l);
    const auto is = [&](int name) { return rule.same_as[at(name)] == v; };
    const auto has = [&](const std::vector<int>& names) { return std::ranges::any_of(names, is); };
    for (int i = 0; i < static_cast<int>(graph.operators.size()); ++i) {
      const Operator& op = graph.operators[at(i)];
      const int number = first_op_[at(l - first_)] + i;
      if (std::ranges::find(op.outputs, v) != op.outputs.end()) tensor.made_by = tensor.last_forward_use = number;
      if (has(op.inputs)) tensor.last_forward_use = std::max(tensor.last_forward_use, number);
      tensor.convolution_input |= foreshard::is<ops::Conv2d>(op.op) && !op.communication && has(op.inputs);
      const bool again = rule.redone[at(i)] && has(op.inputs);  // at the latest for this operator, perhaps for a later one
      if (again) read_back(tensor, first_op_[at(l - first_)] + static_cast<int>(graph.operators.size()) - 1);
      if (again || has(op.saved)) read_back(tensor, number);
    }
  }
  void read_back(HeldTensor& tensor, int op) const {
    const int number = held_.backward_of(op);
    tensor.used_again_by = tensor.used_again_by == 0 ? number : std::min(tensor.used_again_by, number);
    tensor.read_until = std::max(tensor.read_until, number);
  }

  void add(int l, int v) {
    const LayerGraph& graph = layer(l);
    const bool is_output = v == graph.output, ends = is_output && l + 1 == last_;
    if (v == graph.input || ends || keep(l).same_as[at(v)] != v) return;
    const int next = is_output ? layer(l + 1).input : -1;
    if (!keep(l).stored[at(v)] && !(next >= 0 && keep(l + 1).stored[at(next)])) return;
    HeldTensor tensor{.bytes = graph.values[at(v)].bytes};
    note(l, v, tensor);
    if (next >= 0) note(l + 1, next, tensor);
    if (tensor.used_again_by == 0) return;
    held_.job.tensors.push_back(tensor);
    held_.values.push_back({.layer = l, .value = v});
  }

  const OpGraph& graph_;
  int first_ = 0, last_ = 0;
  std::vector<KeepRule> keeps_ = {};  // [layer of the stage]
  std::vector<int> first_op_ = {};    // [layer of the stage]
  HeldValues held_ = {};
};

}  // namespace

HeldValues held_values(const OpGraph& graph, const StageLayout& layers, const ActivationPolicy& policy, int stage) {
  return HeldListing(graph, layers, policy, stage).all();
}

std::vector<ValueMove> moves_of(const HeldValues& held, const TensorPlan& plan, Space home) {
  const int forwards = static_cast<int>(held.operators.size());
  std::vector<std::size_t> order(held.values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t t) { return held.job.tensors[t].used_again_by; });
  std::vector<ValueMove> moves;
  for (const std::size_t t : order) {
    if (plan.choices[t] == TensorChoice{}) continue;
    ValueMove move = held.values[t];
    int leaves = held.job.tensors[t].last_forward_use;
    if (!plan.waits_for_copies)
      while (leaves + 1 < forwards && plan.timing.starts[at(leaves + 1)] < plan.timing.sent[t]) ++leaves;
    move.home = home;
    move.leaves = held.operators[at(leaves)];
    move.returns = held.operators[at(held.backward_of(std::max(plan.choices[t].fetched_at, forwards)))];
    move.computes_wait_back = plan.waits_for_copies;
    moves.push_back(move);
  }
  return moves;
}

}  // namespace foreshard
