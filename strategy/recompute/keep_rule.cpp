#include "strategy/recompute/keep_rule.h"

#include <algorithm>
#include <numeric>

namespace foreshard {

namespace {

// Runs: not recomputed, outputs stored. Redone: recomputed, but outputs that operators outside have saved stay stored. Dropped: no output
// is stored.
enum class Fate : std::uint8_t { Runs, Redone, Dropped };

bool names(const std::vector<std::string>& modules, const std::string& module) {
  const auto named = [&](const std::string& name) { return std::ranges::find(modules, name) != modules.end(); };
  return named(module) || (module == "activation" && named("mlp"));
}

class Keeping {
 public:
  Keeping(const LayerGraph& layer, const Redone& redone) : layer_(layer), stops_(redone.stops) {
    const std::size_t values = layer.values.size(), operators = layer.operators.size();
    rule_.same_as.resize(values);
    std::iota(rule_.same_as.begin(), rule_.same_as.end(), 0);
    rule_.stored.assign(values, 0);
    rule_.redone.assign(operators, 0);
    rule_.run.assign(operators, -1);
    rule_.whole_layer = redone.whole;
    rule_.backward_uses.assign(values, 0);
    fate_.assign(operators, Fate::Runs);
    producer_.assign(values, -1);
    for (const Operator& op : layer.operators)
      if (op.communication && !op.communication->forward && !op.outputs.empty())
        rule_.same_as[static_cast<std::size_t>(op.outputs[0])] = rule_.same_as[static_cast<std::size_t>(op.inputs[0])];
    for (std::size_t i = 0; i < operators; ++i) {
      const Operator& op = layer.operators[i];
      const bool identity = op.communication && !op.communication->forward;
      if (identity) continue;  // nothing runs
      if (op.always_recompute || redone.whole) fate_[i] = Fate::Dropped;
      if (!redone.whole && names(redone.modules, op.module)) fate_[i] = op.module == "attention" ? Fate::Redone : Fate::Dropped;
      // A sum in place is recomputed with the value that it sums.
      if (works_in_place(op)) fate_[i] = origin(real(op.inputs[0]));
      for (const int value : op.outputs) producer_[static_cast<std::size_t>(value)] = static_cast<int>(i);
    }
  }

  KeepRule decide() {
    for (std::size_t i = 0; i < fate_.size() && rule_.whole_layer && !stops_; ++i) rule_.redone[i] = fate_[i] != Fate::Runs;
    mark_saved();
    mark_redone();
    count_uses();
    return std::move(rule_);
  }

 private:
  static bool works_in_place(const Operator& op) { return op.communication && op.communication->forward && op.outputs.empty(); }
  std::size_t real(int value) const { return static_cast<std::size_t>(rule_.same_as[static_cast<std::size_t>(value)]); }
  Fate origin(std::size_t value) const {
    return producer_[value] < 0 ? Fate::Runs : fate_[static_cast<std::size_t>(producer_[value])];
  }

  // For each value that a backward reads: it is stored if its producer is not recomputed, or if the producer's Fate is Redone and an
  // operator that is not recomputed saved the value; else it is wanted.
  void mark_saved() {
    wanted_.assign(layer_.values.size(), 0);
    for (std::size_t i = 0; i < layer_.operators.size(); ++i)
      for (const int saved : layer_.operators[i].saved) {
        const std::size_t value = real(saved);
        if (origin(value) == Fate::Runs || (origin(value) == Fate::Redone && fate_[i] == Fate::Runs))
          rule_.stored[value] = 1;
        else
          wanted_[value] = 1;
      }
  }

  // From the last operator to the first: an operator is recomputed if one of its outputs is wanted, and then wants its inputs.
  void mark_redone() {
    for (int i = static_cast<int>(layer_.operators.size()) - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      if (fate_[at] == Fate::Runs) continue;
      const bool joins = fate_[at] == Fate::Redone;
      const bool behind = joins && at + 1 < fate_.size() && fate_[at + 1] == Fate::Redone && rule_.redone[at + 1];
      const Operator& op = layer_.operators[at];
      if (!rule_.redone[at])
        rule_.redone[at] = behind || makes_wanted(i, joins) || (works_in_place(op) && wanted_[real(op.inputs[0])]);
      if (!rule_.redone[at]) continue;
      if (joins) rule_.run[at] = behind ? rule_.run[at + 1] : i;
      if (!joins && works_in_place(op)) {
        const auto producer = static_cast<std::size_t>(producer_[real(op.inputs[0])]);
        rule_.run[at] = rule_.run[producer] = static_cast<int>(producer);
      }
      for (const int input : layer_.operators[at].inputs) {
        const std::size_t value = real(input);
        if (origin(value) == Fate::Runs)
          rule_.stored[value] = 1;
        else
          wanted_[value] = 1;
      }
    }
  }

  // Whether an output of the operator is wanted; for operators that are recomputed together (`whole_run`), an output of any of them.
  bool makes_wanted(int index, bool whole_run) const {
    for (int i = index; i >= 0 && fate_[static_cast<std::size_t>(i)] == fate_[static_cast<std::size_t>(index)]; --i) {
      for (const int output : layer_.operators[static_cast<std::size_t>(i)].outputs)
        if (wanted_[real(output)]) return true;
      if (!whole_run) break;
    }
    return false;
  }

  void count_uses() {
    for (std::size_t i = 0; i < layer_.operators.size(); ++i) {
      for (const int saved : layer_.operators[i].saved) ++rule_.backward_uses[real(saved)];
      if (!rule_.redone[i]) continue;
      for (const int input : layer_.operators[i].inputs) ++rule_.backward_uses[real(input)];
    }
  }

  const LayerGraph& layer_;
  bool stops_ = false;
  std::vector<Fate> fate_ = {};
  std::vector<int> producer_ = {};
  std::vector<char> wanted_ = {};  // [value]: the backward reads it and it is not stored
  KeepRule rule_ = {};
};

}  // namespace

KeepRule keep_rule(const LayerGraph& layer, const Redone& redone) { return Keeping(layer, redone).decide(); }

}  // namespace foreshard
