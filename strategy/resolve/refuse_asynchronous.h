// What a strategy with an asynchronous parameter server cannot have. Internal to strategy/.
#pragma once

#include <optional>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// The workers of asynchronous servers are whole replicas, each on a GPU or on the GPUs of a tensor-parallel group or pipeline. Nothing: the strategy has no such server, or it can have it.
std::optional<Infeasible> refuse_asynchronous(const Cluster& cluster, const Strategy& strategy);

}  // namespace foreshard
