// What a strategy with an asynchronous parameter server cannot have. Internal to strategy/.
#pragma once

#include <optional>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// The workers of an asynchronous server are whole replicas, each on a GPU. Nothing: the strategy has no such server, or it can have it.
std::optional<Infeasible> refuse_asynchronous(const Cluster& cluster, const Strategy& strategy);

}  // namespace foreshard
