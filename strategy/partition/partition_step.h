// A chain cut into stages with replicas and tensor ranks of their own so that a whole step is short: fill and drain and the last sums of
// gradients are in it, which partition_hybrid leaves out. Seconds and bytes as in partition_hybrid.h.
#pragma once

#include <optional>

#include "strategy/partition/partition_hybrid.h"

namespace foreshard {

// What a stage of layers [first, last) on d replicas cannot be faster than, with M micro-batches of a step:
//   to the stage     forwards of all layers before it, of one micro-batch
//   the stage        M/d times its own work, or what its ports carry: M/d (output_in + output_out) / link
//   what follows     backwards of all layers before it, or the sum of its gradients that its last backward does not hide
// The slowest stage. `partition_hybrid` costs say the first and the last for nothing.
double step_cost(const HybridJob& job, const std::vector<HybridStage>& stages);

// Two stages at least, on the fewest devices, none of which takes more than `seconds`, where layers before a stage take what they take at
// the fastest of all degrees. job.in_flight 0: every stage keeps as many micro-batches as 1F1B does. Empty: more than job.devices.
// O(layers^2 degrees log replicas). Exact for in_flight > 0.
std::optional<HybridPartition> partition_within(const HybridJob& job, double seconds);

// The least such seconds, to a thousandth, and the stages (cost: their step_cost). No plan of these costs is faster than `bound`.
struct StepPartition {
  HybridPartition partition = {};  // empty: nothing fits
  double bound = 0;
};
StepPartition partition_step(const HybridJob& job);

}  // namespace foreshard
