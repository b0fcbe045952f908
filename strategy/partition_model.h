// The layer split of a model's pipeline by the times of its own layers: the embedding and the loss weigh on the ends, and layers of
// a list differ. Internal to strategy/.
#pragma once

#include <string>

#include "core/cluster.h"
#include "core/model.h"
#include "core/strategy.h"

namespace foreshard {

// `layers`: how many of them a split counts. Of the even split and the best that fits the memory of every stage, the one with the
// shorter schedule. `strategy` is resolved; its own split is not looked at. Empty: even (one stage, or more stages than layers).
std::string balanced_split(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers);

}  // namespace foreshard
