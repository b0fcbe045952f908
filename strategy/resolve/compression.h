// What is sent in fewer bytes: from the choice to rows of the tables, and what of a strategy contradicts it.
#pragma once

#include <optional>

#include "core/base/error.h"
#include "core/strategy/strategy.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

// Of sums of gradients over replicas, of sums between tensor-parallel ranks; none: numbers are sent as they are.
std::optional<Coding> gradient_coding(const Strategy& strategy);
std::optional<Coding> activation_coding(const Strategy& strategy);

// Whether sums of activations are of tokens that the attention probabilities choose.
bool reads_probabilities(const Strategy& strategy);

// Of a strategy whose other choices are resolved.
std::optional<Infeasible> refuse_compression(const Strategy& strategy);

}  // namespace foreshard
