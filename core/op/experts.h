// Operators of a mixture of experts (Shazeer et al. 2017; Fedus et al. 2021; DeepSeek-V3, arXiv:2412.19437, section 2.1.2):
//
//   x -> router product -> Route -> weights, experts, loads
//   x, experts -> Dispatch -> rows, sorted by expert -> all-to-all -> GroupedMatMul -> activation -> GroupedMatMul
//     -> all-to-all -> rows, weights -> Combine -> y
//
// Other dispatchers (core/op/dispatcher.h) gather tokens before Dispatch instead of sending rows after it, or run SendOnce and an
// all-to-all before Dispatch, so that a token is sent once to each part of the group.
//
// Symbols: T tokens of this rank, h features, E experts of the layer, E / ranks of them on each of the `ranks` ranks of the expert group, k
// experts chosen by each token. A rank has room for `room` rows to each rank of the group; unused rows are 0. Rows are sorted by expert,
// and those of one expert by token.
#pragma once

#include <cstdint>

#include "core/op/op.h"

namespace foreshard::ops {

// logits [T, E] -> weights [T, k], experts [T, k] (int64), loads [E]: how many tokens chose each expert. Weights and loads have the format
// of statistics. With a correction bias the inputs are logits, biases [E], counts [E], and the outputs weights, experts, loads, counts: the
// counts grow by the loads. (A recomputation has no counts.) The biases are added to the scores by which experts and groups are chosen, not
// to the weights (DeepSeek-V3, equation 16). An all-reduce then sums the loads over the ranks that hold other tokens of the same sequences. Shapes {T, E, k}.
//
// A score is a softmax over all experts, or a sigmoid; SoftmaxOfChosen takes the softmax over the k largest logits. Among equal scores the
// first expert is chosen. With groups, only experts of the `chosen_groups` best groups can be chosen; the score of a group is the sum of
// its `best_of_group` best scores. The weights are the scores of the chosen experts, divided by their sum if `renormalised`, times `scale`.
// `auxiliary` is the coefficient of the load-balancing loss E / (k T) sum_i loads_i mean_t p_i (Fedus et al. 2021, section 2.2; p: scores
// divided by their sum, T: all tokens that the loads count). `z_loss` is the coefficient of the mean over tokens of the squared log of the
// sum of the exponentials of a token's logits (Zoph et al. 2022, arXiv:2202.08906, equation 5). Both add to the gradient of the logits, but
// not to the reported loss.
struct Route : OperatorTraits {
  enum class Score : std::uint8_t { Softmax, SoftmaxOfChosen, Sigmoid };
  Score score = Score::Softmax;
  std::int64_t chosen = 1;
  bool renormalised = false;
  double scale = 1;
  std::int64_t groups = 1, chosen_groups = 1, best_of_group = 1;
  double auxiliary = 0;
  std::int64_t ranks = 1;  // number of ranks that share the tokens of the same sequences
  double z_loss = 0;

  static constexpr const char* kWord = "route";
  static constexpr int kFirstSettings = 9;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("score", self.score), visit("chosen", self.chosen), visit("renormalised", self.renormalised);
    visit("scale", self.scale), visit("groups", self.groups), visit("chosen_groups", self.chosen_groups);
    visit("best_of_group", self.best_of_group), visit("auxiliary", self.auxiliary), visit("ranks", self.ranks);
    visit("z_loss", self.z_loss);
  }
  static Saved saved() { return {.inputs = kFirst, .outputs = kSecond | kThird}; }
  static Works works(const Sizes& sizes) {
    const Bytes chosen = sizes.outputs[0] + sizes.outputs[1] + sizes.outputs[2];
    return {.forward = {{}, sizes.inputs[0] + chosen}, .input_grad = {{}, 2 * sizes.inputs[0] + chosen}};
  }
  bool takes_loss_scale(Phase phase) const { return (auxiliary > 0 || z_loss > 0) && is_input_grad(phase); }
  bool operator==(const Route&) const = default;
};

// dispatch: x [T, h], experts [T, k] -> rows [ranks, room, h], places [T, k] (int64), counts [ranks, E / ranks] (int64). places is the row
// of each choice, -1 if there is no room for it (the choice is dropped); counts is the number of rows of each expert. With `scaled` the
// inputs are x, weights, experts, and each row is multiplied by its weight. An expert below 0 is no choice.
// Shapes {T, h, k, E}, {ranks, room}.
// With `sources` above 1 the tokens are those of this number of ranks, T of each, and only rows of this rank's experts are made: rows
// [sources, room, h], places [sources, T, k], counts [sources, E / ranks]. Each source has room for `room` rows.
struct Dispatch : OperatorTraits {
  std::int64_t capacity = 0;  // the most rows of one expert; 0: limited only by `room`
  bool scaled = false;
  bool dealt = false;  // expert e is on rank e mod ranks; false: a rank has consecutive experts
  std::int64_t sources = 1;

  static constexpr const char* kWord = "dispatch";
  static constexpr int kFirstSettings = 3;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("capacity", self.capacity), visit("scaled", self.scaled), visit("dealt", self.dealt);
    visit("sources", self.sources);
  }
  Saved saved() const { return scaled ? Saved{.inputs = kFirst | kSecond, .outputs = kSecond} : Saved{.outputs = kSecond}; }
  Works works(const Sizes& sizes) const {
    const OpWork there = {{}, sizes.inputs[0] + sizes.outputs[0] + sizes.outputs[1]};
    return {.forward = there, .input_grad = {{}, there.traffic + (scaled ? sizes.inputs[0] : Bytes{})}};
  }
  int gradients() const { return scaled ? 2 : 1; }
  PartialSums partial_sums(Phase phase) const {  // of gathered tokens: each rank has the gradients of its experts' rows
    const bool part = sources > 1 && !is_forward(phase);
    return {.pass = part, .over_experts = part};
  }
  bool operator==(const Dispatch&) const = default;
};

// send_once: x [T, h], weights [T, k], experts [T, k] -> rows [parts, room, h], their weights [parts, room, k], their experts [parts, room, k]
// (int64), places [T, parts] (int64). A token goes once to each part of the expert group that holds experts it chose, with its weights
// there and the numbers of its experts among those of the part; other choices are expert -1 with weight 0. places is the row of the token
// in each part, -1 if it has none there. The parts have equally many of `ranks` ranks, on which experts lie as in Dispatch. Shapes
// {T, h, k, E}, {parts, room}. Results are combined by a plain Combine with one choice per part.
struct SendOnce : OperatorTraits {
  std::int64_t capacity = 0;  // the most tokens that choose one expert: later choices are dropped; 0: no limit
  std::int64_t ranks = 1;     // of the expert group
  bool dealt = false;

  static constexpr const char* kWord = "send_once";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("capacity", self.capacity), visit("ranks", self.ranks), visit("dealt", self.dealt);
  }
  static Saved saved() { return {.outputs = kFourth}; }
  static Works works(const Sizes& sizes) {
    const OpWork there = {{}, sizes.inputs[0] + sizes.outputs[0] + sizes.outputs[1] + sizes.outputs[2] + sizes.outputs[3]};
    return {.forward = there, .input_grad = {{}, sizes.inputs[0] + sizes.outputs[0] + sizes.outputs[1] + sizes.outputs[3]}};
  }
  static int gradients() { return 2; }
  bool operator==(const SendOnce&) const = default;
};

// combine: rows [ranks, room, h], places [T, k], weights [T, k] -> y [T, h]: for each token the sum of its rows, each times its weight.
// Dropped choices count as 0. With `plain` there are no weights. Shapes as of Dispatch. With `partial` a rank has only rows of its own
// experts, so that y is a partial sum over the ranks of the expert group.
struct Combine : OperatorTraits {
  bool plain = false, partial = false;

  static constexpr const char* kWord = "combine";
  static constexpr int kFirstSettings = 1;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("plain", self.plain), visit("partial", self.partial);
  }
  Saved saved() const { return {.inputs = plain ? kSecond : kAll}; }
  Works works(const Sizes& sizes) const {
    const Bytes once = sizes.inputs[0] + sizes.inputs[1] + sizes.outputs[0];
    return {.forward = {{}, once}, .input_grad = {{}, once + (plain ? Bytes{} : sizes.inputs[0])}};
  }
  int gradients() const { return plain ? 1 : 2; }
  // The gradient of the rows is whole, that of the weights a sum over the columns of all parts of an expert.
  PartialSums partial_sums(Phase phase) const {
    return {.pass = partial, .passed = is_forward(phase) ? kAll : kSecond, .over_experts = partial};
  }
  bool operator==(const Combine&) const = default;
};

// One matrix product for each expert of this rank, with the rows that chose it. x [sources, room, k], sorted by expert within each source
// rank, counts [sources, experts] (int64) -> y [sources, room, parts n]; rows beyond the counted ones are 0. There are `parts` weights,
// each [experts n, k], or [experts k, n] if `transposed`, whose results lie side by side in the columns of y; then, with biases, `parts`
// biases [experts n]. Shapes {experts, expected rows of each expert, parts n, k}, {sources, room}.
// For the simulator: the ranks of the expert group but the first have `others` times the expected rows, from 0 to 1.
struct GroupedMatMul : OperatorTraits {
  std::int64_t parts = 1;
  bool transposed = false;
  double others = 1;

  static constexpr const char* kWord = "grouped_matmul";
  static constexpr bool matrix_product = true;
  static constexpr int kFirstSettings = 2;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("parts", self.parts), visit("transposed", self.transposed), visit("others", self.others);
  }
  static Saved saved() { return {.inputs = kFirst | kSecond}; }
  static Works works(const Sizes& sizes) {
    const std::int64_t experts = sizes.count(0, 0), m = sizes.count(0, 1), n = sizes.count(0, 2), k = sizes.count(0, 3);
    const Flops flops = {2.0 * static_cast<double>(experts) * static_cast<double>(m) * static_cast<double>(n) *
                         static_cast<double>(k)};
    const OpWork each = {flops, experts * ((m * k + m * n) * size_of(sizes.input) + n * k * size_of(sizes.param))};
    return {.forward = each, .input_grad = each, .weight_grad = each};
  }
  // Weights are cut only along their first dimension: over ranks that hold other experts, and over ranks that share each expert.
  PartialSums partial_sums(Phase phase) const {
    if (is_forward(phase)) return {.summed_dim = transposed ? 0 : -1, .new_columns = !transposed};
    if (is_input_grad(phase)) return {.summed_dim = transposed ? -1 : 0, .new_columns = true};
    return {};
  }
  bool operator==(const GroupedMatMul&) const = default;
};

}  // namespace foreshard::ops
