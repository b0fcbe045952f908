// Whether a strategy fits the memory of a cluster: the one answer that simulate, search, sweep, fit, advice, export and the window print.
//
// Two things can hold the bytes. For this program's own executor it is the plan's arena, which is laid out before the run: it fits or it
// does not. For a framework that the strategy names it is that framework's allocator, which is predicted (strategy/frameworks) with an error
// that published runs show (strategy/verdict/spread.h): it fits with a probability. Host memory and drives are the plan's in both cases.
#pragma once

#include <optional>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/result/verdict.h"
#include "core/strategy/strategy.h"
#include "strategy/frameworks/framework_allocation.h"
#include "strategy/lower/lower.h"
#include "strategy/verdict/spread.h"

namespace foreshard {

// A strategy that is said to fit does so with at least this probability; one that does not fit, with less than the other.
inline constexpr double kFits = 0.9, kMayFit = 0.1;

// Whether a framework, not this program, runs the strategy.
bool names_framework(const Strategy& strategy);

// The probability that a run takes no more than `capacity` when `predicted` was predicted, both in bytes: log(measured / predicted) is taken
// as normal, with 90 % of it between the logarithms of Spread::low and high.
double probability_of_fitting(double predicted, double capacity, const Spread& errors);
// The factor on predicted bytes that fills the device where a run fits with this probability, between 0 and 1.
double margin_of(double probability, const Spread& errors);

// `allocation`: of the framework that the strategy names; empty: it has none, or cannot be predicted.
Verdict verdict(const Plan& plan, const Cluster& cluster, const Strategy& strategy,
                const std::optional<FrameworkAllocation>& allocation);
// The same for what was lowered with LowerOptions::ignore_memory; predicts the allocation.
Verdict verdict(const Model& model, const Cluster& cluster, const Lowered& lowered);

}  // namespace foreshard
