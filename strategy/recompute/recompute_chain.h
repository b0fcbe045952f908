// Which values of a chain of stages to keep for the backward when memory is short: the fastest way to run every backward.
// Persistent schedules (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal checkpointing for heterogeneous chains",
// 2019): what is kept stays until its backward. The value that a forward is working on is not counted: add it to the stage's.
#pragma once

#include <cstdint>
#include <vector>

namespace foreshard {

struct RecomputeStage {
  double forward = 0, backward = 0;
  int input = 0;       // memory units to keep the input of the stage alone; that of the first stage is always there
  int everything = 0;  // to keep all that its backward reads, the output included
  bool operator==(const RecomputeStage&) const = default;
};

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

// Exact, O(stages^3 memory) time, O(stages^2 memory) space.
RecomputePlan recompute_chain(const std::vector<RecomputeStage>& stages, int memory);

// The plans for 0, 1, ..., `memory` units, at the cost of the last one.
std::vector<RecomputePlan> recompute_chains(const std::vector<RecomputeStage>& stages, int memory);

}  // namespace foreshard
