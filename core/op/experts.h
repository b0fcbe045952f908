// Operators of a mixture of experts (Shazeer et al. 2017; Fedus et al. 2021; DeepSeek-V3, arXiv:2412.19437, section 2.1.2):
//
//   x -> router product -> Route -> weights, experts, loads
//   x, experts -> Dispatch -> rows, sorted by expert -> all-to-all -> GroupedMatMul -> activation -> GroupedMatMul
//     -> all-to-all -> rows, weights -> Combine -> y
//
// T tokens of this rank, h features, E experts of the layer, as many on each of `ranks` ranks; k chosen of each token. A rank sends
// at most `room` rows to each rank; those that are not used are 0. What is sent is sorted by expert, of one expert by token.
#pragma once

#include <cstdint>

#include "core/op/op.h"

namespace foreshard::ops {

// logits [T, E] -> weights [T, k] (statistics), experts [T, k] (int64), loads [E] (statistics): how many tokens chose each expert. The loads
// are then summed over the ranks that see other tokens of the same sequences. Shapes {T, E, k}.
//
// A score is a softmax over all experts, or a sigmoid; SoftmaxOfChosen takes the softmax over the k largest logits. Of equal scores the
// first expert is chosen. With groups, only experts of the `chosen_groups` best groups may be, a group being as good as the sum of its
// `best_of_group` best scores. Weights: the scores of the chosen, over their sum where `renormalised`, times `scale`.
// `auxiliary`, the coefficient of the loss E / (k T) sum_i loads_i mean_t p_i (Fedus et al. 2021, section 2.2; p: scores over their sum, T:
// all tokens that the loads count), adds to the gradient of the logits, not to the loss that is told.
struct Route : Laws {
  enum class Score : std::uint8_t { Softmax, SoftmaxOfChosen, Sigmoid };
  Score score = Score::Softmax;
  std::int64_t chosen = 1;
  bool renormalised = false;
  double scale = 1;
  std::int64_t groups = 1, chosen_groups = 1, best_of_group = 1;
  double auxiliary = 0;
  std::int64_t ranks = 1;  // that hold other tokens of the same sequences

  static constexpr const char* kWord = "route";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("score", self.score), visit("chosen", self.chosen), visit("renormalised", self.renormalised);
    visit("scale", self.scale), visit("groups", self.groups), visit("chosen_groups", self.chosen_groups);
    visit("best_of_group", self.best_of_group), visit("auxiliary", self.auxiliary), visit("ranks", self.ranks);
  }
  static Saved saved() { return {.inputs = kFirst, .outputs = kSecond | kThird}; }
  static Works works(const Sizes& sizes) {
    const Bytes chosen = sizes.outputs[0] + sizes.outputs[1] + sizes.outputs[2];
    return {.forward = {{}, sizes.inputs[0] + chosen}, .input_grad = {{}, 2 * sizes.inputs[0] + chosen}};
  }
  bool takes_loss_scale(Phase phase) const { return auxiliary > 0 && is_input_grad(phase); }
  bool operator==(const Route&) const = default;
};

// x [T, h], experts [T, k] -> rows [ranks, room, h], places [T, k] (int64): the row of each choice, -1 where there is no room for it, counts
// [ranks, E / ranks] (int64): rows of each expert. With `scaled` x, weights, experts: the rows are multiplied by their weights. Shapes
// {T, h, k, E}, {ranks, room}.
struct Dispatch : Laws {
  std::int64_t capacity = 0;  // rows of one expert at most; 0: as many as there is room for
  bool scaled = false;
  bool dealt = false;  // expert e is on rank e mod ranks; else experts of a rank follow each other

  static constexpr const char* kWord = "dispatch";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("capacity", self.capacity), visit("scaled", self.scaled), visit("dealt", self.dealt);
  }
  Saved saved() const { return scaled ? Saved{.inputs = kFirst | kSecond, .outputs = kSecond} : Saved{.outputs = kSecond}; }
  Works works(const Sizes& sizes) const {
    const OpWork there = {{}, sizes.inputs[0] + sizes.outputs[0] + sizes.outputs[1]};
    return {.forward = there, .input_grad = {{}, there.traffic + (scaled ? sizes.inputs[0] : Bytes{})}};
  }
  int gradients() const { return scaled ? 2 : 1; }
  bool operator==(const Dispatch&) const = default;
};

// rows [ranks, room, h], places [T, k], weights [T, k] -> y [T, h]: of each token the sum of its rows, each times its weight; rows that had no
// room count as 0. With `plain` there are no weights. Shapes as of Dispatch.
struct Combine : Laws {
  bool plain = false;

  static constexpr const char* kWord = "combine";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("plain", self.plain);
  }
  Saved saved() const { return {.inputs = plain ? kSecond : kAll}; }
  Works works(const Sizes& sizes) const {
    const Bytes once = sizes.inputs[0] + sizes.inputs[1] + sizes.outputs[0];
    return {.forward = {{}, once}, .input_grad = {{}, once + (plain ? Bytes{} : sizes.inputs[0])}};
  }
  int gradients() const { return plain ? 1 : 2; }
  bool operator==(const Combine&) const = default;
};

// A product for each expert of this rank, of the rows that chose it. x [sources, room, k] sorted by expert within each source, counts [sources,
// experts] (int64) -> y [sources, room, parts x n]; rows beyond those counted are 0. `parts` weights, whose results stand side by side, each
// [experts n, k], or [experts k, n] where `transposed`; with biases as many of [experts n] behind them. Shapes {experts, rows of each, parts
// n, k}: the rows that are expected, {sources, room}.
struct GroupedMatMul : Laws {
  std::int64_t parts = 1;
  bool transposed = false;

  static constexpr const char* kWord = "grouped_matmul";
  static constexpr bool matrix_product = true;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("parts", self.parts), visit("transposed", self.transposed);
  }
  static Saved saved() { return {.inputs = kFirst | kSecond}; }
  static Works works(const Sizes& sizes) {
    const std::int64_t experts = sizes.count(0, 0), m = sizes.count(0, 1), n = sizes.count(0, 2), k = sizes.count(0, 3);
    const Flops flops = {2.0 * static_cast<double>(experts) * static_cast<double>(m) * static_cast<double>(n) *
                         static_cast<double>(k)};
    const OpWork each = {flops, experts * ((m * k + m * n) * size_of(sizes.input) + n * k * size_of(sizes.param))};
    return {.forward = each, .input_grad = each, .weight_grad = each};
  }
  // Weights are cut along their first dimension only, over ranks with other experts and over those with other features of one.
  PartialSums partial_sums(Phase phase) const {
    if (is_forward(phase)) return {.summed_dim = transposed ? 0 : -1, .new_columns = !transposed};
    if (is_input_grad(phase)) return {.summed_dim = transposed ? -1 : 0, .new_columns = true};
    return {};
  }
  bool operator==(const GroupedMatMul&) const = default;
};

}  // namespace foreshard::ops
