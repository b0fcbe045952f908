// Cuts a chain into stages with degrees of their own, as partition_hybrid, but so that a whole step is short: its cost includes the fill
// and drain of the pipeline and the gradient sums at the end of the step, which partition_hybrid leaves out. Seconds and bytes.
#pragma once

#include <optional>

#include "strategy/partition/partition_hybrid.h"

namespace foreshard {

// A lower bound of the seconds of a step with M = job.microbatches micro-batches: the largest, over all stages, of the sum of
//   before   forwards of one micro-batch through all stages before it
//   stage    with d replicas: M/d times the larger of its work (forwards and backwards of its layers) and its transfers,
//            (output_in + output_out) / link
//   after    the larger of the backwards through all stages before it, and the part of its gradient sum that its last backward does not
//            hide
double step_cost(const HybridJob& job, const std::vector<HybridStage>& stages);

// The partition into at least two stages on the fewest devices in which no stage's sum is more than `seconds`. (For layers before a stage
// the sums use the fastest of all tensor degrees.) job.in_flight = 0: each stage has as many micro-batches in flight as under 1F1B. Empty:
// it would take more than job.devices. Exact for in_flight > 0. O(layers^2 degrees log replicas).
std::optional<HybridPartition> partition_within(const HybridJob& job, double seconds);

struct StepPartition {
  HybridPartition partition = {};  // `cost`: its step_cost; no stages: nothing fits
  double bound = 0;                // seconds: no partition has a smaller step_cost
};
// The partition for the least `seconds` for which partition_within finds one, by bisection to a relative precision of 0.001.
StepPartition partition_step(const HybridJob& job);

}  // namespace foreshard
