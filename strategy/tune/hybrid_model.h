// The input of the partitioner that gives every stage its own degrees of data and tensor parallelism
// (strategy/partition/partition_hybrid.h): a model on a cluster as a chain of layers with costs. Also the best plan with equal degrees on
// all stages, for comparison.
#pragma once

#include <optional>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/estimate/estimate.h"
#include "strategy/partition/partition_hybrid.h"

namespace foreshard {

// Builds that input, with the costs of one micro-batch from plans that `lower` makes. It ignores the degrees, ZeRO, rank order and
// virtual stages of `strategy`. Tensor degrees go up to `max_tp`; 0: up to the GPUs of a node. Throws Error when nodes differ.
HybridJob hybrid_job(const Model& model, const Cluster& cluster, const Strategy& strategy, int max_tp,
                     const MachineProfile* profile = nullptr);

// The number of layers that a layer split counts: those of a transformer without embedding and head.
int split_layers(const Model& model);

struct UniformPlan {  // equal degrees on all stages
  HybridPartition partition = {};
  Strategy strategy = {};  // resolved
  Estimate estimate = {};
};
// The plan with equal degrees that fits and is fastest by `refine`, with the layer split that `--layer-split auto` finds. It tries
// degrees in the order of the partitioner's cost (the time of the slowest stage or link) until 12 plans fit. Empty: none fits.
std::optional<UniformPlan> best_uniform_plan(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                             const HybridJob& job, const MachineProfile* profile = nullptr);

}  // namespace foreshard
