// Turns partitions whose stages differ in replicas and tensor ranks into strategies that `lower` takes (--stages).
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
  double guess = 0;  // seconds of one iteration, by step_cost of the job
};

struct StagedPlans {
  std::vector<StagedPlan> plans = {};
  std::optional<Infeasible> why_none = {};  // without plans: why the last one was refused; empty: there was nothing to lower
};

struct StagedLimits {
  int most = 8;                             // plans that are returned
  double seconds = 1e300;                   // partitions with a larger guess are dropped
  const MachineProfile* profile = nullptr;  // measured costs
};

// `strategy` with these stages. Its degrees, layer split, ZeRO, placement and sequence parallelism return to their defaults, and a
// schedule other than GPipe becomes 1F1B.
Strategy with_stages(const Strategy& strategy, const std::vector<StageDegrees>& stages);

// Plans that fit, best guess first. A strategy can express a partition when replicas divide the micro-batches, each tensor degree divides
// the next larger one, and both ends of a model with tied embeddings have the same tensor degree. For every set of degrees of that kind
// the partitions come from partition_step and, where it is quick, from partition_hybrid with gradient sums at their cost and at four times
// that. A partition that `lower` refuses is made again with more memory counted. The costs of the partitions are those of `job`.
StagedPlans staged_plans(const Model& model, const Cluster& cluster, const Strategy& strategy, const HybridJob& job,
                         const StagedLimits& limits);

// Lower bound in seconds on one iteration of every such plan with two or more stages, by the costs of `job`. Of memory it counts the
// states and one micro-batch in flight.
double staged_bound(const Strategy& strategy, HybridJob job);

}  // namespace foreshard
