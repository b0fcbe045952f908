// A model on a cluster as a chain whose stages choose their own data and tensor parallelism, and the best plan that one strategy can
// say, where every stage has as many of both (docs/search.md, "Data and tensor parallelism per stage").
#pragma once

#include <optional>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/estimate/estimate.h"
#include "strategy/partition/partition_hybrid.h"

namespace foreshard {

// Costs of one micro-batch as `lower` makes them. ZeRO, rank orders and virtual stages of `strategy` are not looked at, nor are its
// degrees. `max_tp` 0: up to the GPUs of a node. Throws Error for nodes that differ.
HybridJob hybrid_job(const Model& model, const Cluster& cluster, const Strategy& strategy, int max_tp,
                     const MachineProfile* profile = nullptr);

int split_layers(const Model& model);  // that a layer split counts

struct UniformPlan {
  HybridPartition partition = {};
  Strategy strategy = {};  // resolved
  Estimate estimate = {};
};
// The fastest of the equal-degree plans by `refine` that fits, with the split that `--layer-split auto` finds; the best few by
// their slowest machine are looked at.
std::optional<UniformPlan> best_uniform_plan(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                             const HybridJob& job, const MachineProfile* profile = nullptr);

}  // namespace foreshard
