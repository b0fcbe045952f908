// Partitions whose stages differ in replicas and tensor ranks, as strategies that `lower` takes (--stages).
#pragma once

#include <optional>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"
#include "strategy/tune/hybrid_model.h"

namespace foreshard {

struct StagedPlan {
  HybridPartition partition = {};
  Lowered lowered = {};
  double guess = 0;  // seconds of a step: step_cost of the job
};

struct StagedPlans {
  std::vector<StagedPlan> plans = {};
  std::optional<Infeasible> why_none = {};
};

struct StagedLimits {
  int most = 8;                             // plans
  double seconds = 1e300;                   // a guess above it is of no interest
  const MachineProfile* profile = nullptr;  // measured costs
};

// What `strategy` says of stages with degrees of their own: everything but degrees, split, ZeRO, ranks, sequence parallelism.
Strategy with_stages(const Strategy& strategy, const std::vector<StageDegrees>& stages);

// Plans that fit, best guess first: the partitions of `job` among those that a strategy can say (replicas that divide the
// micro-batches, tensor degrees of which each divides the next, the same at both ends of a model that ties its embeddings), for every such
// set of degrees, by partition_step and, where that is quick, by partition_hybrid with sums of gradients at their cost and at four times
// that; with as little memory left free as `lower` finds room for. The costs of the partitions are those of `job`.
StagedPlans staged_plans(const Model& model, const Cluster& cluster, const Strategy& strategy, const HybridJob& job,
                         const StagedLimits& limits);

// No such plan with two stages or more takes less, by the costs of `job`; memory of its states counted, and of one micro-batch.
double staged_bound(const Strategy& strategy, HybridJob job);

}  // namespace foreshard
