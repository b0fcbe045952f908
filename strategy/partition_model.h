// The layer split of a model's pipeline by the times of its own layers: the embedding and the loss weigh on the ends, and layers of
// a list differ. Internal to strategy/.
#pragma once

#include <string>

#include "core/cluster.h"
#include "core/model.h"
#include "core/strategy.h"
#include "strategy/lower.h"
#include "strategy/partition.h"

namespace foreshard {

// The layers of a model with the costs of one rank at the strategy's tensor degree: each as a stage of its own, on a cluster with
// GPUs enough. `layers`: how many of them a split counts; the embedding is with the first, the loss with the last. Empty: shapes
// that cannot be cut so, or nodes that differ. With transfers that take their time, a layer that is shorter than its transfers is as
// long as these: links bound a pipeline as stages do. Free: what counts links by themselves.
enum class Hops : std::uint8_t { Timed, Free };
std::vector<ChainLayer> layer_chain(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers,
                                    Hops hops = Hops::Timed, const MachineProfile* profile = nullptr);

// `layers`: how many of them a split counts. Of the even split and the best that fits the memory of every stage, the one with the
// shorter schedule. `strategy` is resolved; its own split is not looked at. Empty: even (one stage, or more stages than layers).
std::string balanced_split(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers);

}  // namespace foreshard
