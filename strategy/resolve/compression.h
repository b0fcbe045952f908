// Compressed communication: turns the codecs that a strategy chooses into the Coding of rows of the tables, and refuses strategies that
// contradict such a choice (docs/compression.md).
#pragma once

#include <optional>

#include "core/base/error.h"
#include "core/strategy/strategy.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

// How sums of gradients over data-parallel replicas are encoded; empty: not at all.
std::optional<Coding> gradient_coding(const Strategy& strategy);
// How sums of activations over tensor-parallel ranks are encoded; empty: not at all. Codec::TokenTopK, which sends some tokens instead of
// encoded numbers, has no Coding: see reads_probabilities.
std::optional<Coding> activation_coding(const Strategy& strategy);

// How rows of tokens on their way to experts are encoded; empty: not at all.
std::optional<Coding> dispatch_coding(const Strategy& strategy);

// Whether sums of activations send only the tokens that the attention probabilities rank highest (Codec::TokenTopK with tp > 1).
bool reads_probabilities(const Strategy& strategy);

// Why the chosen codecs are not possible with the strategy's other choices, which must be resolved; empty: they are.
std::optional<Infeasible> refuse_compression(const Strategy& strategy);

}  // namespace foreshard
