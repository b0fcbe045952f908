// The program of one rank spelled out: every instruction of every action in issue order, what it waits for and whom it meets.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/ranks.h"

namespace foreshard {

struct RankStep {
  std::int32_t action = 0, instruction = 0;
  StreamId stream = {};
  std::vector<int> after = {};           // steps of the same run, on other streams, that have to end before it begins
  std::vector<int> after_previous = {};  // ... of the previous run
  // Collective: who meets, in group order, and which of this group's collectives in the run it is.
  std::vector<RankId> members = {};
  std::int64_t sequence = 0;
  // Exchange: the other ends (invalid: none) and which message of the (peer, tag) it is.
  RankId to = {}, from = {};
  std::int64_t sent = 0, received = 0;
};

// Indices of the plan have to be in range. Throws Error for a peer that does not exist.
std::vector<RankStep> steps_of(const Plan& plan, const Ranks& ranks, RankId rank);

inline const Instruction& instruction_of(const Plan& plan, const Role& role, const RankStep& step) {
  const Action& action = role.actions[static_cast<std::size_t>(step.action)];
  return plan.segments[action.segment.index()].instructions[static_cast<std::size_t>(step.instruction)];
}

}  // namespace foreshard
