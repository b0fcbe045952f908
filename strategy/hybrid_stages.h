// Partitions whose stages differ in replicas and tensor ranks, as strategies that `lower` takes (--stages).
#pragma once

#include <optional>
#include <vector>

#include "core/cluster.h"
#include "core/model.h"
#include "core/strategy.h"
#include "strategy/hybrid_model.h"
#include "strategy/lower.h"

namespace foreshard {

struct StagedPlan {
  HybridPartition partition = {};
  Lowered lowered = {};
  double guess = 0;  // seconds of a step: all micro-batches at the pace of the slowest machine, and one from end to end
};

struct StagedPlans {
  std::vector<StagedPlan> plans = {};
  std::optional<Infeasible> why_none = {};
};

// Plans that fit, best guess first, `most` of them: the exact partitions of `job` among those that a strategy can say (replicas that
// divide the micro-batches, tensor degrees of which each divides the next, the same at both ends of a model that ties its
// embeddings), for every such set of degrees, with sums of gradients at their cost and at four times that, and as few micro-batches
// counted in flight as `lower` finds room for. The costs of the partitions are those of `job`.
StagedPlans staged_plans(const Model& model, const Cluster& cluster, const Strategy& strategy, const HybridJob& job, int most);

}  // namespace foreshard
