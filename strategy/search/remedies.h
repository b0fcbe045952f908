// For a strategy that does not fit: finds changes that make it fit, single changes first, then pairs of changes.
#pragma once

#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// At most `most` remedies. Each names the options to set, the memory that results, of the fullest stage or in the framework's allocator, and
// the time that it costs: "--recompute full: 41.3 GiB on stage 0 of 80.0 GiB, 24 % slower". The time is compared with that of the strategy as
// if memory sufficed. Every remedy was lowered and fits (strategy/verdict), and the framework can run it. Pairs are tried only when no single
// change fits. Empty: nothing tried fits.
std::vector<std::string> remedies(const Model& model, const Cluster& cluster, const Strategy& strategy, std::size_t most = 3);

}  // namespace foreshard
