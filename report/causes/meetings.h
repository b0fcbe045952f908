// Meetings: which spans of different classes are the same exchange or collective, and which of them was ready last. The program
// (core/plan/program.h) numbers the uses of a meeting point; the n-th send of a class to another class matches the n-th
// receive there.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/plan/program.h"
#include "core/plan/ranks.h"
#include "core/result/trace.h"

namespace foreshard {

class Meetings {
 public:
  Meetings(const Plan& plan, const Trace& trace, const MeetingPoints& points);  // all must outlive it

  // Records that `span` (an index in the trace) covers use `number` of the meeting point `point` by class `who`. All calls for
  // one class come before those for the next.
  void attend(ClassId who, std::int32_t point, std::int32_t number, std::int32_t span);

  // [span]: the matching span of another class that was ready last; -1 when the span itself was last, when it began before the
  // others were ready, or when no other class takes part.
  std::vector<std::int32_t> last_to_come() const;

 private:
  struct Place {            // what a meeting point is for class `who`: an index in channels_ or in latest_, else -1
    std::int32_t who = -1;  // the entry holds for this class only
    int channel = -1, gathering = -1;
  };
  struct Channel {  // exchanges of two classes with one tag. [number]: span, -1: none
    std::vector<std::int32_t> sends = {}, receives = {};
  };
  struct Visit {
    std::int32_t span = 0, gathering = 0, number = 0;
  };

  Place find(ClassId who, const MeetingPoint& point);
  int channel(std::int32_t from, std::int32_t to, std::int32_t tag);
  int gathering(ClassId who, GroupId group);
  std::int32_t class_of(RankId rank) const { return rank.valid() ? class_of_[rank.index()] : -1; }
  bool later(std::int32_t a, std::int32_t b) const;

  const Trace& trace_;
  const MeetingPoints& points_;
  Ranks ranks_;
  std::vector<std::int32_t> class_of_;  // [rank]
  std::vector<Place> places_;           // [meeting point]
  std::vector<Channel> channels_;
  std::vector<std::vector<std::int32_t>> latest_;  // [gathering][number]: the span that was ready last, -1: none yet
  std::vector<Visit> visits_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, int> channel_ids_;  // (sender, receiver, tag)
  std::map<std::pair<std::int32_t, std::vector<std::int32_t>>, int> gathering_ids_;  // (group, its classes)
  std::vector<std::int32_t> seen_;                                                   // [class]: stamp
  std::int32_t stamp_ = 0;
};

}  // namespace foreshard
