// PlayerInput: everything that the player (replay/player.h) reads. For every rank class: its program, the steps of its segments, the flow
// classes of its slots, and the meetings (communication operations with several parties) that it takes part in. Built once per simulation,
// read-only during it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/plan/program.h"
#include "replay/flow_paths.h"
#include "replay/quotient.h"
#include "replay/steps.h"

namespace foreshard::player {

struct PlayerInput {
  struct Player {  // the representative rank of a class
    RoleId role = {};
    const RoleProgram* program = nullptr;
    const std::vector<const SegmentSteps*>* steps = nullptr;  // [segment]
    std::int32_t first_stream = 0, streams = 0;               // its streams are numbered on from first_stream
  };
  struct Phases {
    std::int32_t first = 0, count = 0;  // a range of `phase_flows`: the phases of a transfer, one after the other
  };
  struct Meeting {
    std::int32_t parties = 0;  // players that must arrive before it begins
    Phases phases = {};        // of an exchange; those of a collective depend on its slot
  };

  std::vector<Player> players = {};            // [class]
  std::vector<Phases> phases = {};             // [class * slots + slot]
  std::vector<std::int32_t> phase_flows = {};  // flow classes
  std::vector<std::int32_t> owner = {};        // [flow class]: the player whose merged steps count the bytes on its links
  std::vector<Meeting> meetings = {};
  std::vector<std::int32_t> meeting_of = {};  // [class * points + meeting point]: index into `meetings`
  // [stream of all players]: index of its first span, in the order (player, stream, begin); one element more than streams.
  std::vector<std::int32_t> first_span = {};
  int slots = 0, points = 0, streams = 0;  // slots and meeting points per player; streams of all players together
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

// `paces` [rank]. `runs`: how often the plan runs, one after the other. Throws Error when some members of a group do not take part in its
// collectives.
PlayerInput make_player_input(const Plan& plan, const Patterns& patterns, const Flows& flows, const Quotient& quotient,
                              const FlowPaths& paths, const std::vector<RankSpeed>& paces, Granularity granularity,
                              int runs = 1);

}  // namespace foreshard::player
