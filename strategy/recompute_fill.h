// Full recomputation of as few layers as make room: what memory is free is filled with kept activations. Internal to strategy/.
#pragma once

#include "core/cluster.h"
#include "core/model.h"
#include "core/strategy.h"

namespace foreshard {

// None, or the first N layers of every stage with the least N that fits; all of them where nothing does (lower tells what is
// missing).
Recompute fewest_redone_layers(const Model& model, const Cluster& cluster, const Strategy& strategy);

}  // namespace foreshard
