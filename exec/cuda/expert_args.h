// The arguments of the kernels of a mixture of experts (kernels/experts.h), with the conventions of kernel_args.h. Symbols as in
// core/op/experts.h.
#pragma once

#include "exec/cuda/kernel_args.h"

namespace foreshard::gpu {

// The most experts of a layer, groups of experts, and choices of a token; limited by the shared memory of a thread block.
inline constexpr int kMostExperts = 1024, kMostGroups = 64, kMostChosen = 64;

enum class Scoring : std::uint8_t { Softmax, SoftmaxOfChosen, Sigmoid };

// The forward writes weights and experts [T, k]; biases [E] may be missing. The backward reads dweights, logits, experts and loads, and
// writes dlogits (+)=. `balance`: the factor of the loads in the gradient of the load-balancing loss; `z`: of the z-loss.
struct RouteArgs {
  View logits, biases, weights, experts, loads, dweights, dlogits, state;
  std::int64_t tokens;
  int experts_of_layer, chosen, groups, chosen_groups, best_of_group;
  Scoring scoring;
  bool renormalised, accumulate;
  float scale, balance, z;
  template <class F>
  void each(F f) const {
    f(logits), f(biases), f(weights), f(experts), f(loads), f(dweights), f(dlogits), f(state);
  }
};

// loads[e] = how many of the `choices` are expert e; totals[e] = before[e] + loads[e], if they exist.
struct TallyArgs {
  View experts, loads, before, totals;
  std::int64_t choices;
  template <class F>
  void each(F f) const {
    f(experts), f(loads), f(before), f(totals);
  }
};

// Biases of routers from their counts (ops::BalanceExperts).
struct BalanceArgs {
  View counts, before, biases;
  int experts;
  float speed;
  template <class F>
  void each(F f) const {
    f(counts), f(before), f(biases);
  }
};

// Assigns rows to choices (ops::Dispatch). E: experts sorted by rank. wanted [sources, E]: number of choices of each expert; first, end
// [sources, E]: its rows [first, end); counts: number of these rows. `own` >= 0: only rows of this rank's experts are made.
struct PlacesArgs {
  View experts, wanted, first, end, counts, places;
  std::int64_t choices, room, capacity;  // choices of one source
  int experts_of_layer, ranks, own;
  bool dealt;
  template <class F>
  void each(F f) const {
    f(experts), f(wanted), f(first), f(end), f(counts), f(places);
  }
};

// Copies between rows of tokens [T, h] and rows of choices. Choice i, of token i / k, has row places[i]; -1: it was dropped. `weights` [T,
// k] may be missing. `to` (+)= weight * from; if `to` has rows of tokens, summed over the choices of a token. dots[i], if it exists, is the
// dot product of choice i's row of `from` and its row of `other`, which is laid out as `to`.
struct ChoiceRowsArgs {
  View from, other, to, weights, places, dots;
  std::int64_t choices, h;
  int chosen;
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(from), f(other), f(to), f(weights), f(places), f(dots);
  }
};

// Sends tokens once to each part of the expert group (ops::SendOnce). kept [choices]: whether a choice is within the capacity of its
// expert; without data all are. sent_experts, sent_weights [parts, room, k] and places [tokens, parts].
struct SendArgs {
  View experts, weights, kept, sent_experts, sent_weights, places;
  std::int64_t tokens, room, capacity;
  int experts_of_layer, chosen, ranks, parts;
  bool dealt;
  template <class F>
  void each(F f) const {
    f(experts), f(weights), f(kept), f(sent_experts), f(sent_weights), f(places);
  }
};

// A matrix product for each expert. Rows of x [sources, room, ...] are sorted by expert, counts [sources, E]. Rows: y[r, c] (+)= sum over i
// of x[r, i] w_e[i, c] (+ bias[e, c]), where w_e[i, c] = w[e size + i by_row + c by_column]. Weights: w_e[i, c] (+)= sum over the rows r of
// e of x[r, i] y[r, c]; bias[e, c] (+)= sum of y[r, c]. x and y are parts of wider rows: of row r they begin at x_width r + x_first.
struct GroupedArgs {
  View x, counts, w, bias, y;
  std::int64_t room, size, by_row, by_column, x_width, x_first, y_width, y_first;
  int sources, experts, inner, columns;
  bool accumulate;
  bool swapped;  // of weights on tensor cores: x and y are exchanged, so the bias sums x and has `inner` elements per expert
  template <class F>
  void each(F f) const {
    f(x), f(counts), f(w), f(bias), f(y);
  }
};

}  // namespace foreshard::gpu
