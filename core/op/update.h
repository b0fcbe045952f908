// Operators of the optimizer update: they work on gradients and optimizer states, not inside a layer. Shapes {elements}.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/op/op.h"

namespace foreshard::ops {

// The learning rate of a stage whose gradients are of old weights: it is divided by delay^p, where p falls linearly from 1 to 0 over the
// first `annealed_over` steps (Yang et al. 2021, arXiv:1910.05124, technique T1).
struct DelayedRate {
  // Updates between the weights that a forward reads and those that its gradients change; 0 and 1: no effect.
  std::int64_t delay = 0;
  std::int64_t annealed_over = 0;  // steps; 0: no effect

  // What the rate of step `step`, counted from 1, is multiplied by.
  double factor(std::int64_t step) const {
    if (delay < 2 || annealed_over == 0) return 1;
    const double p = 1 - std::min(static_cast<double>(step - 1) / static_cast<double>(annealed_over), 1.0);
    return std::pow(static_cast<double>(delay), -p);
  }
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("delay", self.delay), visit("rate_annealed_over", self.annealed_over);
  }
  bool operator==(const DelayedRate&) const = default;
};

struct Adam : OperatorTraits {  // Kingma & Ba 2015; decoupled decay as in AdamW (Loshchilov & Hutter 2019)
  // 0: plain Adam. More: it reads the next first moment in place of the gradient, and the second moment no longer changes after this
  // number of steps (Tang et al. 2021, algorithm 1). Before that it is updated with the gradient computed back from the first moments.
  std::int64_t frozen_after = 0;
  DelayedRate rate = {};

  static constexpr const char* kWord = "adam";
  static constexpr bool steps = true, of_update = true;
  static constexpr double flops_per_element = 12;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("frozen_after", self.frozen_after), DelayedRate::fields(self.rate, visit);
  }
  static bool takes_loss_scale(Phase) { return true; }
  bool operator==(const Adam&) const = default;
};

struct Sgd : OperatorTraits {
  double momentum = 0;
  DelayedRate rate = {};

  static constexpr const char* kWord = "sgd";
  static constexpr bool steps = true, of_update = true;
  static constexpr double flops_per_element = 4;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("momentum", self.momentum), DelayedRate::fields(self.rate, visit);
  }
  static bool takes_loss_scale(Phase) { return true; }
  bool operator==(const Sgd&) const = default;
};

// Adds the sum of the squares of gradients to one number, whose square root is the gradient norm.
struct GradNorm : OperatorTraits {
  std::int64_t divide = 1;  // the sum is divided by this number of ranks, which hold the same elements
  std::int64_t used = 0;    // leading elements that are not padding; 0: all

  static constexpr const char* kWord = "grad_norm";
  static constexpr bool of_update = true, reads_sums = true;
  static constexpr double flops_per_element = 2;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("divide", self.divide), visit("used", self.used);
  }
  bool operator==(const GradNorm&) const = default;
};

// Scales gradients down so that their norm is at most max_norm (Pascanu et al. 2013).
struct ClipScale : OperatorTraits {
  double max_norm = 1;

  static constexpr const char* kWord = "clip_scale";
  static constexpr bool of_update = true, reads_sums = true;
  static constexpr double flops_per_element = 1;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("max_norm", self.max_norm);
  }
  static bool takes_loss_scale(Phase) { return true; }
  bool operator==(const ClipScale&) const = default;
};

// Detects overflow (a gradient norm that is not finite) and adapts the loss scale (Micikevicius et al. 2018, section 3.2): halved after an
// overflow, doubled after `growth` steps without one.
struct JudgeOverflow : OperatorTraits {
  std::int64_t growth = 2000;
  double start = 1;  // the initial loss scale

  static constexpr const char* kWord = "judge_overflow";
  static constexpr bool of_update = true, reads_sums = true;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("growth", self.growth), visit("start", self.start);
  }
  bool operator==(const JudgeOverflow&) const = default;
};

// balance_experts: counts [routers, E], biases [routers, E] -> biases, counts: at the end of a step, the correction bias of each expert of a
// router grows by `speed` if fewer tokens than the mean chose it, falls by `speed` if more did (Wang et al. 2024, arXiv:2408.15664,
// algorithm 1), and the counts become 0. Shapes {routers, E}.
struct BalanceExperts : OperatorTraits {
  double speed = 0.001;

  static constexpr const char* kWord = "balance_experts";
  static constexpr bool of_update = true;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("speed", self.speed);
  }
  bool operator==(const BalanceExperts&) const = default;
};

// Converts numbers to another format.
struct Cast : OperatorTraits {
  static constexpr const char* kWord = "cast";
  template <class Self, class Visit>
  static void fields(Self&, Visit&&) {}
  static PartialSums partial_sums(Phase) { return {.pass = true}; }
  bool operator==(const Cast&) const = default;
};

// Sets its output to zero.
struct Zero : OperatorTraits {
  static constexpr const char* kWord = "zero";
  static constexpr bool of_update = true;
  template <class Self, class Visit>
  static void fields(Self&, Visit&&) {}
  bool operator==(const Zero&) const = default;
};

}  // namespace foreshard::ops
