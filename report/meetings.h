// Meetings: which spans of different classes are the same exchange or collective, and who came last. Paired in issue
// order per (classes, tag) for exchanges and per (group, classes) for collectives, as the plan says.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "core/ranks.h"
#include "core/trace.h"
#include "report/joints.h"

namespace foreshard {

class Meetings {
 public:
  Meetings(const Plan& plan, const Trace& trace, int joints);  // both must outlive it

  // The class comes to the joint (numbered over all segments), which `span` (an index in the trace) covers. Classes one
  // after the other, each in its issue order.
  void attend(ClassId who, int joint_number, const Joint& joint, std::int32_t span);

  // [span]: the matching span that was ready last, -1 when the span itself was or when it meets nobody outside its
  // class.
  std::vector<std::int32_t> last_to_come() const;

 private:
  struct Place {            // where the current class goes for a joint
    std::int32_t who = -1;  // valid for this class only
    int sends = -1, receives = -1, gathering = -1;
  };
  struct Channel {
    std::vector<std::int32_t> sends = {}, receives = {};
  };
  struct Gathering {
    std::vector<std::int32_t> latest = {};
  };  // [occurrence]: the span that was ready last
  struct Visit {
    std::int32_t span = 0, gathering = 0, occurrence = 0;
  };

  Place find(ClassId who, const Joint& joint);
  int channel(std::int32_t from, std::int32_t to, std::int32_t tag);
  int gathering(ClassId who, GroupId group);
  std::int32_t class_of(RankId rank) const { return rank.valid() ? class_of_[rank.index()] : -1; }
  bool later(std::int32_t a, std::int32_t b) const;

  const Trace& trace_;
  Ranks ranks_;
  std::vector<std::int32_t> class_of_;  // [rank]
  std::vector<Place> places_;           // [joint number]
  std::vector<Channel> channels_;
  std::vector<Gathering> gatherings_;
  std::vector<std::pair<std::int32_t, std::int32_t>> occurrences_;  // [gathering]: (class, how often it came)
  std::vector<Visit> visits_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, int> channel_ids_;  // (sender, receiver, tag)
  std::map<std::pair<std::int32_t, std::vector<std::int32_t>>, int> gathering_ids_;  // (group, its classes)
  std::vector<std::int32_t> seen_;                                                   // [class]: stamp
  std::int32_t stamp_ = 0;
};

}  // namespace foreshard
