// Where to cut a chain of layers when every stage may choose its own share of data and tensor parallelism: docs/search.md, "Data and
// tensor parallelism per stage". Times in seconds, sizes in bytes.
#pragma once

#include <vector>

#include "strategy/partition/partition.h"

namespace foreshard {

// The chain as ranks of a tensor group of `degree` see it: times of a micro-batch with the group's collectives in them; weights,
// output, states and kept of one rank.
struct TensorDegree {
  int degree = 1;
  std::vector<ChainLayer> layers = {};
  int inside = 1;       // replicas of a group in one node
  double near = 1e300;  // bytes per second with which they sum their gradients
  double far = 1e300;   // and more of them
  bool operator==(const TensorDegree&) const = default;
};

struct HybridStage {
  int first = 0, last = 0;  // layers [first, last)
  int replicas = 1, tensor = 1;
  int devices() const { return replicas * tensor; }
  bool operator==(const HybridStage&) const = default;
};

struct HybridJob {
  std::vector<TensorDegree> degrees = {};  // all with the same number of layers
  int devices = 1;
  double microbatches = 1;  // of a step, over all replicas of a stage
  double link = 1e300;      // bytes per second between a rank and its peer in the next stage
  double capacity = 1e300;  // bytes of a device
  int in_flight = 1;        // micro-batches that a replica keeps
  // What a strategy can say (--stages): these numbers of replicas only, rising; empty: any. And the tensor degree of the stages that
  // hold the first or the last layer, where these share a tensor; 0: any.
  std::vector<int> replicas = {};
  int ends = 0;
  bool operator==(const HybridJob&) const = default;
};

// The time of one stage per micro-batch of the pipeline in the steady state, d replicas of tensor groups of t taking turns:
//   work   (sum f_t + sum b_t) / d  +  2 (d-1)/d weights_t / bandwidth(t, d) / microbatches     gradients are summed once per step
//   ports  2 output_t / (link d)    of the layer before the stage, and of its last one: a link is as fast as its slower end
// The slowest of these machines.
double hybrid_cost(const HybridJob& job, const HybridStage& stage);

struct HybridPartition {
  std::vector<HybridStage> stages = {};  // empty: nothing fits
  double cost = 0;                       // of its slowest machine
};

// At most job.devices devices over stages, so that the slowest machine is as fast as possible, with
// states + in_flight kept <= capacity on every rank. Exact. O(layers^2 devices log devices) per tensor degree.
HybridPartition partition_hybrid(const HybridJob& job);

// Likewise with every stage on as many replicas and tensor ranks: what one strategy can say. `stages` of them.
HybridPartition partition_uniform(const HybridJob& job, int tensor, int replicas, int stages);

}  // namespace foreshard
