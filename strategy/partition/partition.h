// Where to cut a chain of layers into pipeline stages. Exact for their objectives (docs/search.md, "Layer partition"); times in
// seconds, sizes in bytes.
#pragma once

#include <string>
#include <vector>

namespace foreshard {

struct ChainLayer {
  double forward = 0, backward = 0;  // of one micro-batch
  double weights = 0;                // bytes that replicas have to sum
  double output = 0;                 // bytes to the next layer; the gradient back is as large
  double states = 0, kept = 0;       // bytes of parameters, gradients, optimizer; bytes that a micro-batch in flight keeps
  bool operator==(const ChainLayer&) const = default;
};

struct ChainStage {
  int first = 0, last = 0;  // layers [first, last)
  int replicas = 1;
  bool operator==(const ChainStage&) const = default;
};

struct ChainPartition {
  std::vector<ChainStage> stages = {};  // empty: not possible
  double cost = 0;
};

// PipeDream (Narayanan et al. 2019, section 3.1): at most `devices` devices over stages of one or more replicas, so that the
// slowest stage or link is as fast as possible, per micro-batch in the steady state:
//   stage  (sum of f + b + 4 (k-1)/k weights / bandwidth) / k      replicas take turns with micro-batches
//   link   2 output / bandwidth
// O(devices^2 layers^2).
ChainPartition partition_bottleneck(const std::vector<ChainLayer>& chain, int devices, double bandwidth);

// The cost of given stages by that formula.
double bottleneck_cost(const std::vector<ChainLayer>& chain, const std::vector<ChainStage>& stages, double bandwidth);

// GPipe with m micro-batches, one device per stage: sum f + (m-1) max f + sum b + (m-1) max b (exact for its schedule without
// transfers). Thresholds on the longest forward, O(layers) cuts per threshold and backward limit.
ChainPartition partition_gpipe(const std::vector<ChainLayer>& chain, int stages, int microbatches);
double gpipe_cost(const std::vector<ChainLayer>& chain, const std::vector<ChainStage>& stages, int microbatches);

// What one place of a pipeline is made of: GPUs may differ.
struct StagePlace {
  double slowdown = 1;      // of its computes
  double capacity = 1e300;  // bytes
  // To the next place: seconds of a transfer before its first byte, and of each. It occupies the way there.
  double hop = 0, hop_per_byte = 0;
  bool operator==(const StagePlace&) const = default;
};

// One stage per place, 1F1B with m micro-batches: place r of p keeps min(m, p - r) of them. The slowest stage or transfer as fast as
// possible (its steady state), with every stage inside the memory of its place. Exact: O(places layers^2). Empty: no partition
// fits.
ChainPartition partition_pipeline(const std::vector<ChainLayer>& chain, const std::vector<StagePlace>& places,
                                  int microbatches);

// "2,3x14,2" of stages without replicas.
std::string split_text(const std::vector<ChainStage>& stages);

}  // namespace foreshard
