// estimate: how long a strategy takes and whether it fits, without the simulator. Two tiers share the costs of `lower`:
//   refine  of a plan: a replay on the light clock with one class of ranks per role (docs/search-estimates.md, "Refine")
//   screen  of a strategy, by the hundred thousand: closed forms over numbers measured once per shape (estimate_screen.h)
#pragma once

#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "strategy/lower/lower.h"

namespace foreshard {

// What holds an iteration up: the arithmetic and memory of the busiest rank, its tensor or context collectives, the
// pipeline's fill and drain, or what follows the last backward.
enum class BoundBy : std::uint8_t { Compute, TensorCommunication, Pipeline, Gradients };
const char* name_of(BoundBy bound);

struct Estimate {
  Seconds time = {};           // one iteration
  Seconds compute = {};        // of the busiest rank, of one iteration
  Seconds communication = {};  // likewise, on its compute stream
  Seconds skew = {};           // what a further iteration saves when ranks begin it without waiting for each other
  Seconds tail = {};           // after the last backward: gradients, update, parameters
  Bytes peak = {};             // arena of the largest rank + framework
  Bytes margin = {};           // capacity - reserve - peak; negative: does not fit
  BoundBy bound_by = BoundBy::Compute;
  bool operator==(const Estimate&) const = default;
};

// Durations of the actions of one pipeline stage, each by itself: what its compute stream does, transfers left out.
struct StageDurations {
  double forward = 0, backward = 0;  // seconds; communication on the compute stream included
  double weights = 0;                // of the backward: weight gradients, where kernels of their own make them
  double communication = 0;          // of both together
  double forward_communication = 0;  // of the forward alone
  double hop = 0;                    // transfer of the output to the next stage; the gradient takes as long back
  bool operator==(const StageDurations&) const = default;
};
std::vector<StageDurations> stage_durations(const Plan& plan, const Cluster& cluster);

// `microbatches`: the iteration's number of micro-batches, where it is larger than the plan's; every further one takes what the
// schedule's recurrence says. Throws Error when the schedule's lists deadlock.
Estimate refine(const Lowered& lowered, const Cluster& cluster, int microbatches = 0);

}  // namespace foreshard
