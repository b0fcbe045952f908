// Decides which values of a chain of stages (here: layers) to keep for the backward when memory is short, so that all backwards take the
// least time. Optimal persistent schedules, in which a value that is kept stays until its backward (Beaumont, Eyraud-Dubois, Herrmann,
// Joly, Shilova, "Optimal checkpointing for heterogeneous chains", 2019; the tool Rotor). The memory counts kept values only: the caller
// has to leave room for the values that a running forward or backward works on.
#pragma once

#include <cstdint>
#include <vector>

namespace foreshard {

struct RecomputeStage {
  double forward = 0, backward = 0;  // seconds
  // Memory units to keep the input of the stage; that of the first stage is always kept and not counted.
  int input = 0;
  int everything = 0;  // memory units to keep all that its backward reads, the output included
  bool operator==(const RecomputeStage&) const = default;
};

// Forward keeps nothing; ForwardKeepInput keeps its output, the input of the next stage; ForwardKeepAll keeps all that the backward of its
// stage reads.
enum class RecomputeWork : std::uint8_t { Forward, ForwardKeepInput, ForwardKeepAll, Backward };
struct RecomputeStep {
  RecomputeWork work = RecomputeWork::Forward;
  int stage = 0;
  bool operator==(const RecomputeStep&) const = default;
};

struct RecomputePlan {
  double seconds = 0;                     // infinite: not possible
  std::vector<RecomputeStep> steps = {};  // empty: not possible
};

// The fastest schedule within `memory` units. Exact; O(stages^3 memory) time, O(stages^2 memory) space.
RecomputePlan recompute_chain(const std::vector<RecomputeStage>& stages, int memory);

// [m]: the plan for m = 0, 1, ..., `memory` units. Takes as long as the last of them alone.
std::vector<RecomputePlan> recompute_chains(const std::vector<RecomputeStage>& stages, int memory);

}  // namespace foreshard
