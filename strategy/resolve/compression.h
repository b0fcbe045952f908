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
// How sums of activations over tensor-parallel ranks are encoded; empty: not at all. Compression::tokens has no Coding: see
// reads_probabilities.
std::optional<Coding> activation_coding(const Strategy& strategy);

// How rows of tokens on their way to experts are encoded; empty: not at all.
std::optional<Coding> dispatch_coding(const Strategy& strategy);

// Whether sums of activations send only the tokens that the attention probabilities rank highest (Compression::tokens with tp > 1).
bool reads_probabilities(const Strategy& strategy);

// Why the chosen codecs are not possible with the strategy's other choices, which must be resolved; empty: they are.
std::optional<Infeasible> refuse_compression(const Model& model, const Strategy& strategy);

// CommunicationChoice::compress_group: the replicas (dp x cp ranks) that add their gradients before codes are sent. 0 becomes the most that
// are on one node if the replicas are on several nodes; 1 where there is no such sum.
std::optional<Infeasible> resolve_compress_group(const Cluster& cluster, Strategy& strategy);

}  // namespace foreshard
