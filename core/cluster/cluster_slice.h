// A part of a node, for a job that needs fewer GPUs than one node has.
#pragma once

#include "core/cluster/cluster.h"

namespace foreshard {

// A cluster of one node, reduced to its first `gpus` GPUs; switches, NICs and host parts stay. The cluster has to have one node, and at
// least `gpus` GPUs.
Cluster with_first_gpus(Cluster cluster, int gpus);

}  // namespace foreshard
