#include "strategy/estimate_solo.h"

#include <algorithm>

namespace foreshard {

Solo::Solo(const Plan& plan, AloneTimes& alone, RoleId role, bool in_turn, const Meetings* known, Meetings* found)
    : plan_(plan),
      alone_(alone),
      role_(role),
      in_turn_(in_turn),
      known_(known),
      found_(found),
      streams_(plan.roles[role.index()].streams.size(), 0.0) {}

double Solo::meet(const Instruction& run, double begin) {
  const auto* what = std::get_if<Collective>(&run.what);
  if (!found_ || !what || plan_.groups[what->group.index()].roles.size() < 2) return begin;
  const std::pair<std::int32_t, int> key{what->group.value, uses_[what->group.value]++};
  double& last = (*found_)[key];
  last = std::max(last, begin);
  const auto entry = known_->find(key);
  return entry == known_->end() ? begin : std::max(begin, entry->second);
}

double Solo::end() const { return *std::max_element(streams_.begin(), streams_.end()); }

void Solo::play(const Action& action, std::vector<Span>* spans, std::int32_t number) {
  const Segment& segment = plan_.segments[action.segment.index()];
  const std::vector<double>& seconds = durations(action.segment);
  ends_.assign(segment.instructions.size(), 0.0);
  for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
    const Instruction& run = segment.instructions[i];
    double& stream = streams_[run.stream.index()];
    double begin = stream;
    for (const std::int32_t after : run.after) begin = std::max(begin, ends_[static_cast<std::size_t>(after)]);
    for (const EventUse& wait : run.waits)
      if (const auto found = events_.find({wait.event.value, slot(wait.slot, action)}); found != events_.end())
        begin = std::max(begin, found->second);
    begin = meet(run, begin);
    stream = ends_[i] = end_of(run, begin, seconds[i], cost(action.segment, i));
    for (const EventUse& record : run.records) events_[{record.event.value, slot(record.slot, action)}] = stream;
    if (run.stream.value == 0 && std::holds_alternative<Collective>(run.what)) communication_ += seconds[i];
    if (!spans) continue;
    const Nanoseconds from = to_nanoseconds(Seconds{begin}), to = to_nanoseconds(Seconds{stream});
    spans->push_back({.who = {role_.value},
                      .action = number,
                      .instruction = static_cast<std::int32_t>(i),
                      .stream = run.stream,
                      .ready = from,
                      .begin = from,
                      .end = to});
  }
}

double Solo::send(SegmentId id) {
  const Segment& segment = plan_.segments[id.index()];
  for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
    const auto* what = std::get_if<Exchange>(&segment.instructions[i].what);
    if (what && what->to && what->to->role_shift != 0) return durations(id)[i];
  }
  return 0;
}

// A receive does not hold its rank up here, but its kernel takes compute units as long as the send.
double Solo::end_of(const Instruction& run, double begin, double seconds, const Cost& cost) {
  if (run.stream.value == 0) return std::holds_alternative<Compute>(run.what) ? slowed(begin, seconds) : begin + seconds;
  if (std::holds_alternative<Collective>(run.what)) {
    beside_ += seconds;
    if (in_turn_) begin = std::max(begin, last_collective_);
    last_collective_ = begin + seconds;
  }
  double length = seconds;
  if (const auto* what = std::get_if<Exchange>(&run.what); what && !what->to) length = alone_.receive(role_, *what, cost);
  if (length > 0 && cost.sm_share > 0) transfers_.push_back({begin, begin + length, cost.sm_share});
  return begin + seconds;
}

// When `work` seconds that begin at `when` are done, beside the transfers under way.
double Solo::slowed(double when, double work) {
  std::erase_if(transfers_, [&](const Transfer& t) { return t.end <= when; });
  for (bool more = !transfers_.empty(); more;) {
    double speed = 1, next = when + work / 0.05;
    for (const Transfer& t : transfers_) {
      if (t.begin <= when && t.end > when) speed -= t.share, next = std::min(next, t.end);
      if (t.begin > when) next = std::min(next, t.begin);
    }
    speed = std::max(0.05, speed);
    more = when + work / speed > next;
    if (!more) return when + work / speed;
    work -= (next - when) * speed;
    when = next;
  }
  return when + work;
}

std::int32_t Solo::slot(const Slot& slot, const Action& action) {
  if (const auto* fixed = std::get_if<std::int32_t>(&slot.which)) return *fixed;
  return action.args[std::get<ParamId>(slot.which).index()];
}

const std::vector<double>& Solo::durations(SegmentId id) {
  auto [entry, fresh] = seconds_.try_emplace(id.value);
  if (!fresh) return entry->second;
  const Segment& segment = plan_.segments[id.index()];
  const std::vector<Cost>& costs = plan_.costs.front().by_segment[id.index()];
  for (std::size_t i = 0; i < segment.instructions.size(); ++i)
    entry->second.push_back(alone_.duration(role_, segment.instructions[i], costs[i]));
  return entry->second;
}

}  // namespace foreshard
