// A short run of a pipeline whose stages share a NIC for their gradients and parameters (docs/search.md, "Screen"). Every rank has
// one queue of what it says to its replicas, its backlog; ranks of one node whose backlog is not empty have equal parts of the
// NIC. Times in seconds; talk in seconds that it takes alone. Internal to strategy/.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "strategy/estimate/estimate_play.h"

namespace foreshard {

// An action, or a part of the end of a run. A hold lasts until no more than so much of the backlog is left.
struct TalkStep {
  static constexpr double kNoHold = -1;
  double compute = 0;                             // seconds, with those of `still`
  std::array<double, Links::kStills> still = {};  // seconds of collectives that the computes wait for, again and again
  double ahead = 0;                               // talk said as soon as it is next
  double before = 0;                              // talk said at its begin
  double begin_hold = kNoHold;                    // ahead of its computes
  double said_at = 0;                             // after so much compute ...
  double said = 0;                                // ... this is said
  double middle = 0;                              // after so much compute of these
  double middle_hold = kNoHold;                   // this hold, then
  double free = 0;                                // so much compute goes on until
  double hold = kNoHold;                          // this hold
  bool again = false;                             // that only behind the same chunk
  double after = 0;                               // said at its end
  double over_groups = 0;                         // part of what is said, to replicas with equal shards
};

// Of a chunk of one kind (PipelineTimes).
struct TalkOfChunk {
  TalkStep forward = {}, backward = {}, last_backward = {};
  // At the end of the run: sums that no backward said, before and after that of a tied embedding, gathers of parameters, the update
  // of all units and of one.
  double sums = 0, sums_after_tied = 0, gathers = 0, update = 0, one_update = 0;
  double early_gathers = 0;  // gathers of the run before that the first forward waits for
  double early_share = 0;    // the part of the forward that the last of them holds up
};

struct TalkTimes {
  std::array<TalkOfChunk, 3> of = {};
  std::vector<TalkOfChunk> by_rank = {};  // [3 rank + kind] where ranks differ
  const TalkOfChunk& at(int rank, int kind) const {
    return by_rank.empty() ? of[static_cast<std::size_t>(kind)] : by_rank[static_cast<std::size_t>(3 * rank + kind)];
  }
  bool sums = false;  // over all replicas at once
  double share = 0;   // of the compute units, while there is a backlog
  double tied = -1;   // sum of the first and the last rank's copy; negative: none
};

// Seconds that no play takes less than: all that a rank computes, with what stands before and behind that; all that it says; all that crosses a
// link.
double least_talk(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways, double bytes,
                  bool overlap);

class PlayMemory;  // what plays remember from one to the next (estimate_speeds.h)

// No play takes less: one in which nothing meets anything. Empty as play_talk.
std::optional<double> play_talk_alone(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways,
                                      double bytes, bool overlap);

// Until all ranks are done; if that is more than `enough`, perhaps a lower bound of it that is more, too. Empty: too many chunks, or a
// schedule that it does not know. The answer does not depend on `memory`.
std::optional<double> play_talk(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways,
                                double bytes, bool overlap, double enough = 1e300, PlayMemory* memory = nullptr);

}  // namespace foreshard
