// Cuts a model whose layers form a directed acyclic graph into pipeline stages. A closed set contains, with each of its layers, all layers
// that this one reads. A stage is the difference of two closed sets, so every value goes forward through the pipeline. Exact over all such
// cuts.
#pragma once

#include <vector>

#include "strategy/partition/partition.h"

namespace foreshard {

struct DagLayer {
  ChainLayer cost = {};          // `output`: bytes that cross every cut between the layer and its last reader
  std::vector<int> inputs = {};  // indices of the layers that it reads
};

struct DagPartition {
  std::vector<std::vector<int>> stages = {};  // [stage]: its layers, ascending; empty: no partition fits
  double cost = 0;                            // seconds per micro-batch of the slowest stage or link
  // False: there are too many closed sets, only prefixes of one topological order were tried.
  bool exact = true;
};

// As partition_pipeline, but a link takes 2 * bytes / bandwidth seconds per micro-batch (activations forward and gradients back) for all
// values that cross its cut; `bandwidth` in bytes per second. Throws Error if the graph has a cycle. O(ranks sets^2) for the number of
// closed sets, if there are at most `most_sets`.
DagPartition partition_dag(const std::vector<DagLayer>& graph, const std::vector<StagePlace>& places, int microbatches,
                           double bandwidth, std::size_t most_sets = 4000);

}  // namespace foreshard
