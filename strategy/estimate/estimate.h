// estimate: how long an iteration of a strategy takes and whether it fits, without the simulator. Two ways use the costs of `lower`:
//   refine  replays one strategy's plan on the light clock, with one class of ranks per role (docs/search-estimates.md, "Refine")
//   screen  orders hundreds of thousands of strategies by closed forms over costs measured once per shape (estimate_screen.h)
#pragma once

#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "strategy/lower/lower.h"

namespace foreshard {

// What takes the largest share of an iteration: the computes of the busiest rank; its tensor or context collectives; idle time of the
// pipeline; or what follows the last backward.
enum class BoundBy : std::uint8_t { Compute, TensorCommunication, Pipeline, Gradients };
const char* name_of(BoundBy bound);

struct Estimate {
  Seconds time = {};           // of one iteration
  Seconds compute = {};        // computes of the busiest rank in one iteration
  Seconds communication = {};  // communication between operators that its computes do not hide, in one iteration
  // Schedules with split backwards: how much shorter a second iteration is if no barrier precedes it, by evaluate() (schedule.h).
  Seconds next_iteration_gain = {};
  Seconds tail = {};  // from the last backward to the end (one stage: time - compute - communication)
  Bytes peak = {};    // arena of the largest rank + framework memory
  Bytes margin = {};  // least of memory - reserve - peak over all ranks; negative: does not fit
  BoundBy bound_by = BoundBy::Compute;
  bool operator==(const Estimate&) const = default;
};

// Isolated durations in seconds of the actions of one pipeline stage for one micro-batch, as long as the longest of their streams, without
// transfers between stages.
struct StageDurations {
  double forward = 0, backward = 0;  // communication between operators included, on whichever stream it runs
  double weights = 0;                // the part of `backward` in kernels that compute weight gradients only
  double communication = 0;          // the part of forward + backward in communication that no compute hides
  double forward_communication = 0;  // the part of `forward` in such communication
  double hop = 0;                    // transfer of the output to the next stage; the gradient takes the same time back
  bool operator==(const StageDurations&) const = default;
};
std::vector<StageDurations> stage_durations(const Plan& plan, const Cluster& cluster);  // [stage]

// A plan replayed once. The estimates of iterations that have more micro-batches than the plan follow from it; the time of the others
// comes from evaluate() over the schedule's lists.
class ReplayedPlan {
 public:
  // `longer`: whether iterations with more micro-batches than the plan's will be asked for. Throws Error when the lists of the schedule
  // deadlock.
  ReplayedPlan(const Lowered& lowered, const Cluster& cluster, bool longer);
  Estimate estimate(int microbatches = 0) const;  // 0: those of the plan

 private:
  Strategy strategy_;
  int microbatches_ = 0;    // of the plan
  bool is_steady_ = false;  // own_ is of the steady period, which grows with the micro-batches
  Estimate own_ = {};       // of the plan, without its next_iteration_gain
  std::vector<StageDurations> stages_ = {};
};

// The estimate of a plan, or of an iteration that has more micro-batches than the plan.
Estimate refine(const Lowered& lowered, const Cluster& cluster, int microbatches = 0);

}  // namespace foreshard
