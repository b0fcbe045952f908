// Part of a node: what a job uses that needs fewer GPUs than one node has.
#pragma once

#include "core/cluster/cluster.h"

namespace foreshard {

// The only node of a cluster with its first `gpus` GPUs; switches, NICs and hosts stay.
Cluster with_first_gpus(Cluster cluster, int gpus);

}  // namespace foreshard
