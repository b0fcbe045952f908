#include "report/causes/meetings.h"

#include <algorithm>

namespace foreshard {

// The entry with this number, -1 when new.
static std::int32_t& entry(std::vector<std::int32_t>& spans, std::int32_t number) {
  if (spans.size() <= static_cast<std::size_t>(number)) spans.resize(static_cast<std::size_t>(number) + 1, -1);
  return spans[static_cast<std::size_t>(number)];
}

Meetings::Meetings(const Plan& plan, const Trace& trace, const MeetingPoints& points)
    : trace_(trace), points_(points), ranks_(plan), places_(points.points.size()), seen_(trace.classes.size(), 0) {
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

// A group instance is identified by the set of classes of its members: instances with equal sets behave the same, because
// folding joins only ranks that behave the same.
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
  const auto [at, fresh] = gathering_ids_.try_emplace({group.value, std::move(classes)}, static_cast<int>(latest_.size()));
  if (fresh) latest_.emplace_back();
  return at->second;
}

Meetings::Place Meetings::find(ClassId who, const MeetingPoint& point) {
  Place place{who.value, -1, -1};
  if (trace_.classes[who.index()].members.empty()) return place;
  if (point.kind == MeetingPoint::Kind::Collective) {
    place.gathering = gathering(who, point.group);
    return place;
  }
  const std::int32_t other = class_of(ranks_.peer(trace_.classes[who.index()].members.front(), point.peer));
  if (other < 0 || other == who.value) return place;
  const bool sends = point.kind == MeetingPoint::Kind::Send;
  place.channel = sends ? channel(who.value, other, point.tag) : channel(other, who.value, point.tag);
  return place;
}

bool Meetings::later(std::int32_t a, std::int32_t b) const {
  return trace_.spans[static_cast<std::size_t>(a)].ready > trace_.spans[static_cast<std::size_t>(b)].ready;
}

void Meetings::attend(ClassId who, std::int32_t number_of_point, std::int32_t number, std::int32_t span) {
  const MeetingPoint& point = points_.points[static_cast<std::size_t>(number_of_point)];
  Place& place = places_[static_cast<std::size_t>(number_of_point)];
  if (place.who != who.value) place = find(who, point);
  if (place.channel >= 0) {
    Channel& channel = channels_[static_cast<std::size_t>(place.channel)];
    entry(point.kind == MeetingPoint::Kind::Send ? channel.sends : channel.receives, number) = span;
  }
  if (place.gathering < 0) return;
  std::int32_t& latest = entry(latest_[static_cast<std::size_t>(place.gathering)], number);
  if (latest < 0 || later(span, latest)) latest = span;
  visits_.push_back({span, place.gathering, number});
}

std::vector<std::int32_t> Meetings::last_to_come() const {
  std::vector<std::int32_t> last(trace_.spans.size(), -1);
  // A span that covers several instructions may begin before a peer of one of them is ready: the span did not wait for that
  // peer.
  const auto consider = [&](std::int32_t self, std::int32_t other) {
    std::int32_t& best = last[static_cast<std::size_t>(self)];
    const auto begin = trace_.spans[static_cast<std::size_t>(self)].begin;
    if (trace_.spans[static_cast<std::size_t>(other)].ready > begin) return;
    if (later(other, best < 0 ? self : best)) best = other;
  };
  for (const Channel& channel : channels_) {
    const std::size_t pairs = std::min(channel.sends.size(), channel.receives.size());
    for (std::size_t k = 0; k < pairs; ++k) {
      if (channel.sends[k] < 0 || channel.receives[k] < 0) continue;
      consider(channel.sends[k], channel.receives[k]);
      consider(channel.receives[k], channel.sends[k]);
    }
  }
  for (const Visit& visit : visits_)
    consider(visit.span, latest_[static_cast<std::size_t>(visit.gathering)][static_cast<std::size_t>(visit.number)]);
  return last;
}

}  // namespace foreshard
