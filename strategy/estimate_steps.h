// What a role's segments are when a whole iteration is played: runs of instructions of one stream that nobody else can tell apart
// are one step, with the collectives between them that share their links with nobody (as the simulator does at granularity
// "stage"). Internal to strategy/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/plan.h"
#include "strategy/estimate_alone.h"

namespace foreshard {

// Seconds that compute, which kernels beside them slow, or that do not.
struct PlayedStretch {
  double seconds = 0;
  bool computes = true;
};

struct PlayedStep {
  std::int32_t stream = 0;
  bool computes = false;            // some of it
  double computing = 0, fixed = 0;  // seconds: of computes; of all else, before the first byte of what has links
  double bytes = 0;                 // on the wires
  double work = 0;                  // seconds that they take alone on the links of `kind`
  double share = 0;                 // of the compute units, while it communicates
  int kind = -1;                    // of traffic that others may meet; -1: none
  int send = -1, receive = -1;      // channels; a collective of several roles: send
  std::int32_t first_stretch = 0, end_stretch = 0;  // none where it only computes, or not at all
  std::vector<std::int32_t> after = {};             // steps of the segment
};

// In issue order: a wait belongs to the newest record before it.
struct PlayedEvent {
  EventUse use = {};
  std::int32_t step = 0;
  bool records = false;
};

struct PlayedSegment {
  std::vector<PlayedStep> steps = {};
  std::vector<PlayedStretch> stretches = {};
  std::vector<PlayedEvent> events = {};
};

// The segments that the roles of a plan issue. What meets: a send and a receive have a channel, and so have the roles of a group.
class PlayedPlan {
 public:
  PlayedPlan(const Plan& plan, AloneTimes& alone);

  const PlayedSegment& at(RoleId role, SegmentId segment) const { return segments_[role.index()][segment.index()]; }
  int channels() const { return static_cast<int>(parties_.size()); }
  int parties(int channel) const { return parties_[static_cast<std::size_t>(channel)]; }
  std::size_t steps() const { return steps_; }  // of all actions

 private:
  // {group, from role, to role, axis, shift, tag}
  using Channel = std::tuple<int, int, int, int, int, std::string>;
  void tell_kinds(AloneTimes& alone);
  PlayedSegment read(RoleId role, SegmentId segment, AloneTimes& alone);
  PlayedStep step_of(RoleId role, const Instruction& run, const Cost& cost, AloneTimes& alone);
  int channel(const Channel& key, int parties);
  int transfer_channel(int role, const Peer& peer, const std::string& tag, bool sends);
  int kind_of(RoleId role, const Instruction& run, AloneTimes& alone);
  bool to_itself(int kind) const { return kind < 0 || lonely_[static_cast<std::size_t>(kind)] != 0; }
  bool one_of_several(const Collective& what) const { return plan_.groups[what.group.index()].roles.size() > 1; }
  const Cost& cost(RoleId role, SegmentId segment, std::size_t i) const;

  const Plan& plan_;
  std::vector<std::vector<PlayedSegment>> segments_ = {};  // [role][segment]
  std::map<Channel, int> ids_ = {};
  std::vector<int> parties_ = {};                                            // [channel]
  std::vector<char> lonely_ = {};                                            // [kind]: has its links to itself
  std::vector<std::vector<std::pair<const Instruction*, int>>> known_ = {};  // [role]: kinds of what has been looked at
  std::size_t steps_ = 0;
};

}  // namespace foreshard
