// The program of one rank as a flat list: every instruction of every action in issue order, with its dependencies and the ranks with which
// it communicates.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/ranks.h"

namespace foreshard {

struct RankStep {
  std::int32_t action = 0, instruction = 0;  // index of the action in the role, and of the instruction in the action's segment
  StreamId stream = {};
  std::vector<int> after = {};  // steps of the same run, on other streams, that have to end before it begins
  // Steps of other runs, issued before it, that have to end before it begins: of the previous run, mostly.
  std::vector<int> after_previous = {};
  // For a collective: the members in group order, and its number among the collectives of this group in the run.
  std::vector<RankId> members = {};
  std::int64_t sequence = 0;
  // For an exchange: the other ranks (invalid: none), and the number of the message among those with the same peer and tag in the run.
  RankId to = {}, from = {};
  std::int64_t sent = 0, received = 0;
};

// The steps of a rank. All indices in the plan must be in range. Throws Error for a peer that does not exist.
std::vector<RankStep> steps_of(const Plan& plan, const Ranks& ranks, RankId rank);

inline const Instruction& instruction_of(const Plan& plan, const Role& role, const RankStep& step) {
  const Action& action = role.actions[static_cast<std::size_t>(step.action)];
  return plan.segments[action.segment.index()].instructions[static_cast<std::size_t>(step.instruction)];
}

}  // namespace foreshard
