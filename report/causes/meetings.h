// Meetings: which spans of different classes are the same exchange or collective, and who came last. Uses of a meeting point are
// numbered by the program (core/plan/program.h); the n-th send of a class to another one is the n-th receive there.
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

  // Use `number` of the meeting point by the class, which `span` (an index in the trace) covers. Classes one after the other.
  void attend(ClassId who, std::int32_t point, std::int32_t number, std::int32_t span);

  // [span]: the matching span that was ready last, -1 when the span itself was or when no rank outside takes part in its
  // class.
  std::vector<std::int32_t> last_to_come() const;

 private:
  struct Place {            // where the current class goes for a meeting point
    std::int32_t who = -1;  // valid for this class only
    int channel = -1, gathering = -1;
  };
  struct Channel {  // [number]: span, -1: none
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
  std::vector<std::vector<std::int32_t>> latest_;  // [gathering][number]: the span that was ready last, -1: none came
  std::vector<Visit> visits_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, int> channel_ids_;  // (sender, receiver, tag)
  std::map<std::pair<std::int32_t, std::vector<std::int32_t>>, int> gathering_ids_;  // (group, its classes)
  std::vector<std::int32_t> seen_;                                                   // [class]: stamp
  std::int32_t stamp_ = 0;
};

}  // namespace foreshard
