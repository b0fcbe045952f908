// One rank playing its actions with isolated durations: its streams, its events, nobody else. Internal to strategy/.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "core/trace.h"
#include "strategy/estimate_alone.h"

namespace foreshard {

// What a peer would delay is in the schedule's recurrence. `in_turn`: collectives beside the computes take the links in issue
// order, as with ZeRO 3 and one place for gathered parameters.
//
// Collectives of several roles begin when the last of them is there: `known` says when, as far as an earlier pass has found out,
// and what this one finds goes to `found`.
using Meetings = std::map<std::pair<std::int32_t, int>, double>;  // {group, how manieth use}

class Solo {
 public:
  Solo(const Plan& plan, AloneTimes& alone, RoleId role, bool in_turn, const Meetings* known = nullptr,
       Meetings* found = nullptr);

  // The compute stream stands still until then.
  void wait_until(double when) { streams_[0] = std::max(streams_[0], when); }
  // Adds a span per instruction to `spans` when that is given; `action` is the number written there.
  void play(const Action& action, std::vector<Span>* spans = nullptr, std::int32_t number = 0);

  double compute_end() const { return streams_[0]; }
  double end() const;
  double communication() const { return communication_; }
  double beside() const { return beside_; }  // seconds of collectives on other streams
  double send(SegmentId id);                 // of the send of a segment, if it has one

 private:
  struct Transfer {  // beside the computes: takes a share of the compute units
    double begin = 0, end = 0, share = 0;
  };

  const Cost& cost(SegmentId segment, std::size_t i) const { return plan_.costs.front().by_segment[segment.index()][i]; }
  double meet(const Instruction& run, double begin);
  double end_of(const Instruction& run, double begin, double seconds, const Cost& cost);
  double slowed(double when, double work);
  static std::int32_t slot(const Slot& slot, const Action& action);
  const std::vector<double>& durations(SegmentId id);

  const Plan& plan_;
  AloneTimes& alone_;
  RoleId role_;
  bool in_turn_;
  const Meetings* known_;
  Meetings* found_;
  std::map<std::int32_t, int> uses_ = {};  // of groups of several roles
  std::vector<double> streams_;
  std::vector<double> ends_ = {};
  std::map<std::pair<std::int32_t, std::int32_t>, double> events_ = {};
  std::map<std::int32_t, std::vector<double>> seconds_ = {};
  std::vector<Transfer> transfers_ = {};
  double communication_ = 0, beside_ = 0, last_collective_ = 0;
};

}  // namespace foreshard
