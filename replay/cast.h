// Cast: who plays what. Every rank class gets its program, the steps of its segments, the flow classes behind its slots
// and the meeting points where it finds the others; built once per simulation, read-only while it plays.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/plan/program.h"
#include "replay/flow_paths.h"
#include "replay/quotient.h"
#include "replay/steps.h"

namespace foreshard::player {

struct Cast {
  struct Player {
    RoleId role = {};
    const RoleProgram* program = nullptr;
    const std::vector<const SegmentSteps*>* steps = nullptr;  // [segment]
    std::int32_t first_stream = 0, streams = 0;               // of all streams of all players
  };
  struct Phases {
    std::int32_t first = 0, count = 0;  // of `phase_flows`
  };
  struct Meeting {
    std::int32_t parties = 0;  // players that have to come
    Phases phases = {};        // of an exchange; a collective's depend on its slot
  };

  std::vector<Player> players = {};            // [class]
  std::vector<Phases> phases = {};             // [class * slots + slot]
  std::vector<std::int32_t> phase_flows = {};  // flow classes
  std::vector<std::int32_t> owner = {};        // [flow class]: the player whose merged steps count for its links
  std::vector<Meeting> meetings = {};
  std::vector<std::int32_t> meeting_of = {};  // [class * points + meeting point]
  // [stream of all players] where its spans begin in the order (player, stream, begin); one more than streams.
  std::vector<std::int32_t> first_span = {};
  int slots = 0, points = 0, streams = 0;
  std::int32_t runs = 1;

  std::vector<RoleProgram> programs = {};  // [role]
  std::deque<SegmentSteps> all_steps = {};
  std::deque<std::vector<const SegmentSteps*>> step_sets = {};

  std::size_t spans() const { return static_cast<std::size_t>(first_span.back()); }
  const Phases& phases_at(int player, int slot) const {
    return phases[static_cast<std::size_t>(player) * static_cast<std::size_t>(slots) + static_cast<std::size_t>(slot)];
  }
  int meeting(int player, int point) const {
    return meeting_of[static_cast<std::size_t>(player) * static_cast<std::size_t>(points) + static_cast<std::size_t>(point)];
  }
};

// `runs` of the plan, one after the other. Throws Error when the members of a group do not all take part in it.
Cast make_cast(const Plan& plan, const Patterns& patterns, const Flows& flows, const Quotient& quotient, const FlowPaths& paths,
               const std::vector<double>& slowdown, Granularity granularity, int runs = 1);

}  // namespace foreshard::player
