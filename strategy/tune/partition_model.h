// The layer split of a model's pipeline by the times of its own layers: the embedding and the loss weigh on the ends, and layers of
// a list differ. Internal to strategy/.
#pragma once

#include <string>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"
#include "strategy/partition/partition.h"

namespace foreshard {

// The layers of a model with the costs of one rank at the strategy's tensor degree, each as a stage of its own, on a cluster with
// GPUs enough; transfers aside, which count by themselves. `layers`: how many of them a split counts; the embedding is with the first,
// the loss with the last. Empty: shapes that cannot be cut so, or nodes that differ.
std::vector<ChainLayer> layer_chain(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers,
                                    const MachineProfile* profile = nullptr);

// `layers`: how many of them a split counts. The split with the shortest schedule, transfers in it, of: the even one; those with the fastest
// slowest stage, and slowest stage or transfer, that fit the memory of every stage; and what small steps lead to from these, layers
// moved over a border. `strategy` is resolved; its own split is not looked at. Empty: even (one stage, or more stages than layers).
std::string balanced_split(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers,
                           const MachineProfile* profile = nullptr);

}  // namespace foreshard
