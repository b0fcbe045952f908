// Cuts a chain of layers into stages and chooses for each stage its own degrees of data and tensor parallelism, as a strategy with --stages
// has them. A dynamic program over layers and devices as in PipeDream (Narayanan et al. 2019, section 3.1), with tensor parallelism added.
// Times in seconds, sizes in bytes.
#pragma once

#include <vector>

#include "strategy/partition/partition.h"

namespace foreshard {

// The chain under one tensor-parallel degree: the numbers of each layer are those of one rank, and its times include the collectives of the
// tensor group.
struct TensorDegree {
  int degree = 1;
  std::vector<ChainLayer> layers = {};
  int inside = 1;       // the most replicas of a tensor group that fit in one node
  double near = 1e300;  // bytes per second of the all-reduce of gradients over up to `inside` replicas
  double far = 1e300;   // and over more replicas
  bool operator==(const TensorDegree&) const = default;
};

struct HybridStage {
  int first = 0, last = 0;  // layers first .. last - 1
  int replicas = 1, tensor = 1;
  int devices() const { return replicas * tensor; }
  bool operator==(const HybridStage&) const = default;
};

struct HybridJob {
  std::vector<TensorDegree> degrees = {};  // the degrees to choose from, all with the same number of layers
  int devices = 1;
  double microbatches = 1;  // of a step, over all replicas of a stage
  double link = 1e300;      // bytes per second between a rank and its peer in the next stage
  double capacity = 1e300;  // bytes of memory of a device
  int in_flight = 1;        // micro-batches in flight on each replica
  // Restrictions of --stages. Allowed numbers of replicas, ascending; empty: any. Tensor degree of the stages that hold the first or the
  // last layer, for models whose first and last layer share a tensor; 0: any.
  std::vector<int> replicas = {};
  int ends = 0;
  bool operator==(const HybridJob&) const = default;
};

// Seconds per micro-batch of the pipeline that a stage takes in the steady state, with d replicas of tensor degree t that take
// micro-batches in turn. The larger of
//   work    (sum f_t + sum b_t) / d  +  2 (d-1)/d weights_t / bandwidth(t, d) / microbatches     gradients are summed once per step
//   links   2 output_t / (link d)    for the output of the layer before the stage and of its last layer, activation and gradient
double hybrid_cost(const HybridJob& job, const HybridStage& stage);

struct HybridPartition {
  std::vector<HybridStage> stages = {};  // empty: no partition fits
  double cost = 0;                       // hybrid_cost of its slowest stage
};

// The partition of the chain on at most job.devices devices whose slowest stage is as fast as possible, with states + in_flight * kept <=
// capacity on every rank. Exact. O(layers^2 devices log devices) per tensor degree.
HybridPartition partition_hybrid(const HybridJob& job);

// The same for `stages` stages that all have the given tensor degree and number of replicas, as a strategy with --tp, --dp and --pp.
HybridPartition partition_uniform(const HybridJob& job, int tensor, int replicas, int stages);

}  // namespace foreshard
