// Cuts a chain of layers into pipeline stages so that the slowest stage is as fast as possible (exact, by dynamic programming). Times in
// seconds, sizes in bytes.
#pragma once

#include <string>
#include <vector>

namespace foreshard {

struct ChainLayer {
  double forward = 0, backward = 0;  // seconds of one micro-batch
  double weights = 0;                // bytes of gradients that are summed over replicas
  double output = 0;                 // bytes that go to the next layer; the gradient that comes back has as many
  // Bytes of parameters, gradients and optimizer states; bytes of activations that each micro-batch in flight keeps.
  double states = 0, kept = 0;
  bool operator==(const ChainLayer&) const = default;
};

struct ChainStage {
  int first = 0, last = 0;  // layers first .. last - 1
  int replicas = 1;
  bool operator==(const ChainStage&) const = default;
};

struct ChainPartition {
  std::vector<ChainStage> stages = {};  // empty: not possible
  double cost = 0;                      // seconds per micro-batch of the slowest stage or transfer
};

// The device of one pipeline rank; devices may differ.
struct StagePlace {
  double slowdown = 1;      // factor on the times of its layers
  double capacity = 1e300;  // bytes of memory
  // A transfer to the next rank takes hop + hop_per_byte * bytes seconds. Transfers on this link run one at a time.
  double hop = 0, hop_per_byte = 0;
  bool operator==(const StagePlace&) const = default;
};

// One stage per rank, under 1F1B with m micro-batches: rank r of p has min(m, p - r) of them in flight. Minimizes the time per micro-batch
// of the slowest stage or transfer (the steady state of the pipeline), with every stage inside the memory of its rank. Exact;
// O(ranks layers^2). No stages: no partition fits.
ChainPartition partition_pipeline(const std::vector<ChainLayer>& chain, const std::vector<StagePlace>& places,
                                  int microbatches);

// Numbers of layers per stage as text, "2,3x14,2" (2, then 14 times 3, then 2), without replicas.
std::string split_text(const std::vector<ChainStage>& stages);

}  // namespace foreshard
