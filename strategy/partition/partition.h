// Where to cut a chain of layers into pipeline stages. Exact for its objective; times in
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
