#include "report/meetings.h"

#include <algorithm>

namespace foreshard {

Meetings::Meetings(const Plan& plan, const Trace& trace, int joints)
    : trace_(trace), ranks_(plan), places_(static_cast<std::size_t>(joints)), seen_(trace.classes.size(), 0) {
  class_of_.assign(static_cast<std::size_t>(ranks_.count()), -1);
  for (std::size_t c = 0; c < trace.classes.size(); ++c)
    for (const RankId member : trace.classes[c].members)
      if (member.valid() && member.index() < class_of_.size()) class_of_[member.index()] = static_cast<std::int32_t>(c);
}

int Meetings::channel(std::int32_t from, std::int32_t to, std::int32_t tag) {
  const auto [at, fresh] = channel_ids_.try_emplace({from, to, tag}, static_cast<int>(channels_.size()));
  if (fresh) channels_.emplace_back();
  return at->second;
}

// A group instance is known by the set of classes of its members: instances with equal sets are alike, or the folding
// would not have put their ranks together.
int Meetings::gathering(ClassId who, GroupId group) {
  ++stamp_;
  std::vector<std::int32_t> classes;
  for (const RankId member : ranks_.members(group, trace_.classes[who.index()].members.front())) {
    const std::int32_t other = class_of(member);
    if (other < 0 || seen_[static_cast<std::size_t>(other)] == stamp_) continue;
    seen_[static_cast<std::size_t>(other)] = stamp_;
    classes.push_back(other);
  }
  if (classes.size() < 2) return -1;
  std::sort(classes.begin(), classes.end());
  const auto [at, fresh] = gathering_ids_.try_emplace({group.value, std::move(classes)}, static_cast<int>(gatherings_.size()));
  if (fresh) {
    gatherings_.emplace_back();
    occurrences_.emplace_back(-1, 0);
  }
  return at->second;
}

Meetings::Place Meetings::find(ClassId who, const Joint& joint) {
  Place place{who.value, -1, -1, -1};
  if (trace_.classes[who.index()].members.empty()) return place;
  const RankId self = trace_.classes[who.index()].members.front();
  if (const auto* exchange = std::get_if<Exchange>(&joint.source->what)) {
    const std::int32_t to = exchange->to ? class_of(ranks_.peer(self, *exchange->to)) : -1;
    const std::int32_t from = exchange->from ? class_of(ranks_.peer(self, *exchange->from)) : -1;
    if (to >= 0 && to != who.value) place.sends = channel(who.value, to, joint.tag);
    if (from >= 0 && from != who.value) place.receives = channel(from, who.value, joint.tag);
  } else if (const auto* collective = std::get_if<Collective>(&joint.source->what)) {
    place.gathering = gathering(who, collective->group);
  }
  return place;
}

bool Meetings::later(std::int32_t a, std::int32_t b) const {
  return trace_.spans[static_cast<std::size_t>(a)].ready > trace_.spans[static_cast<std::size_t>(b)].ready;
}

void Meetings::attend(ClassId who, int joint_number, const Joint& joint, std::int32_t span) {
  Place& place = places_[static_cast<std::size_t>(joint_number)];
  if (place.who != who.value) place = find(who, joint);
  if (place.sends >= 0) channels_[static_cast<std::size_t>(place.sends)].sends.push_back(span);
  if (place.receives >= 0) channels_[static_cast<std::size_t>(place.receives)].receives.push_back(span);
  if (place.gathering < 0) return;
  auto& [visitor, times] = occurrences_[static_cast<std::size_t>(place.gathering)];
  if (visitor != who.value) visitor = who.value, times = 0;
  const int occurrence = times++;
  std::vector<std::int32_t>& latest = gatherings_[static_cast<std::size_t>(place.gathering)].latest;
  if (latest.size() <= static_cast<std::size_t>(occurrence))
    latest.push_back(span);
  else if (later(span, latest[static_cast<std::size_t>(occurrence)]))
    latest[static_cast<std::size_t>(occurrence)] = span;
  visits_.push_back({span, place.gathering, occurrence});
}

std::vector<std::int32_t> Meetings::last_to_come() const {
  std::vector<std::int32_t> last(trace_.spans.size(), -1);
  // A span that covers several instructions may begin before a peer of one of them is ready: that peer did not hold it
  // up.
  const auto consider = [&](std::int32_t self, std::int32_t other) {
    std::int32_t& best = last[static_cast<std::size_t>(self)];
    const auto begin = trace_.spans[static_cast<std::size_t>(self)].begin;
    if (trace_.spans[static_cast<std::size_t>(other)].ready > begin) return;
    if (later(other, best < 0 ? self : best)) best = other;
  };
  for (const Channel& channel : channels_) {
    const std::size_t pairs = std::min(channel.sends.size(), channel.receives.size());
    for (std::size_t k = 0; k < pairs; ++k) {
      consider(channel.sends[k], channel.receives[k]);
      consider(channel.receives[k], channel.sends[k]);
    }
  }
  for (const Visit& visit : visits_)
    consider(visit.span,
             gatherings_[static_cast<std::size_t>(visit.gathering)].latest[static_cast<std::size_t>(visit.occurrence)]);
  return last;
}

}  // namespace foreshard
