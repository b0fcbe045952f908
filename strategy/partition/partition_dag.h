// Where to cut a model that is not a chain: stages are differences of closed sets of layers (with a layer all it reads), so every
// value goes forward. Exact over all such cuts (docs/search.md, "Layer partition").
#pragma once

#include <vector>

#include "strategy/partition/partition.h"

namespace foreshard {

struct DagLayer {
  ChainLayer cost = {};  // `output`: bytes that go over every cut between the layer and its last reader, and as many back
  std::vector<int> inputs = {};  // indices of the layers that it reads
};

struct DagPartition {
  std::vector<std::vector<int>> stages = {};  // layers of each, ascending; empty: nothing fits
  double cost = 0;
  bool exact = true;  // false: too many closed sets, only those along one order were looked at
};

// As partition_pipeline, with links as machines of their own: 2 bytes / bandwidth of all values that cross a cut. Throws Error when
// the graph has a cycle. O(places sets^2) for `sets` closed sets, of which at most `most_sets` are looked at.
DagPartition partition_dag(const std::vector<DagLayer>& graph, const std::vector<StagePlace>& places, int microbatches,
                           double bandwidth, std::size_t most_sets = 4000);

}  // namespace foreshard
