#include "report/causes/occupancy.h"

#include <algorithm>

namespace foreshard {

SumsByRole sums_by_role(const Plan& plan) {
  SumsByRole sums;
  std::vector<std::string> kinds;
  for (const Role& role : plan.roles) {
    const auto known = std::find(kinds.begin(), kinds.end(), role.device_kind);
    sums.of_role.push_back(static_cast<std::size_t>(known - kinds.begin()));
    if (known != kinds.end()) continue;
    kinds.push_back(role.device_kind);
    sums.tables.emplace_back(plan, role.device_kind);
  }
  return sums;
}

namespace {

using Interval = std::pair<Nanoseconds, Nanoseconds>;

// Sorts the intervals and joins those that touch or overlap.
void join(std::vector<Interval>& intervals) {
  if (!std::is_sorted(intervals.begin(), intervals.end())) std::sort(intervals.begin(), intervals.end());
  std::size_t kept = 0;
  for (const Interval& next : intervals) {
    if (kept > 0 && next.first <= intervals[kept - 1].second)
      intervals[kept - 1].second = std::max(intervals[kept - 1].second, next.second);
    else
      intervals[kept++] = next;
  }
  intervals.resize(kept);
}

Nanoseconds overlap(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Nanoseconds sum = {};
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Nanoseconds from = std::max(a[i].first, b[j].first), to = std::min(a[i].second, b[j].second);
    if (from < to) sum += to - from;
    if (a[i].second < b[j].second)
      ++i;
    else
      ++j;
  }
  return sum;
}

void shorten(Seconds& shortest, Nanoseconds time) {
  if (shortest.value == 0 || to_seconds(time) < shortest) shortest = to_seconds(time);
}

// Gives the compute time of an action to the stage that it works for.
void credit(std::vector<StageTimes>& stages, const Action& action, Nanoseconds busy, Nanoseconds weight_gradient) {
  if (action.does.size() != 1 || busy == Nanoseconds{}) return;
  const Does& does = action.does.front();
  if (does.stage < 0 || static_cast<std::size_t>(does.stage) >= stages.size()) return;
  StageTimes& stage = stages[static_cast<std::size_t>(does.stage)];
  switch (does.work) {
    case Work::F: shorten(stage.forward, busy); return;
    case Work::B:
      weight_gradient = std::min(weight_gradient, busy);
      shorten(stage.backward_input, busy - weight_gradient);
      if (weight_gradient > Nanoseconds{}) shorten(stage.backward_weight, weight_gradient);
      return;
    case Work::I: shorten(stage.backward_input, busy); return;
    case Work::W: shorten(stage.backward_weight, busy); return;
    case Work::Update: return;
  }
}

bool between_roles(const Exchange& exchange) {
  return (exchange.to && exchange.to->role_shift != 0) || (exchange.from && exchange.from->role_shift != 0);
}

}  // namespace

std::vector<Occupancy> occupancy(const Plan& plan, const Trace& trace, const SumsByRole& sums) {
  std::vector<Occupancy> classes(trace.classes.size());
  std::vector<Interval> computing, communicating;
  for (std::size_t s = 0; s < trace.spans.size();) {
    const ClassId who = trace.spans[s].who;
    const RoleId role_id = trace.classes[who.index()].role;
    const Role& role = plan.roles[role_id.index()];
    Occupancy& own = classes[who.index()];
    computing.clear();
    communicating.clear();
    for (; s < trace.spans.size() && trace.spans[s].who == who; ++s) {
      const Span& span = trace.spans[s];
      switch (role.streams[span.stream.index()].kind) {
        case StreamKind::Compute:
          own.communicating += sums[role_id].communication(role.actions[static_cast<std::size_t>(span.action)].segment, span);
          computing.emplace_back(span.begin, span.end);
          break;
        case StreamKind::Communication:
        case StreamKind::CopyIn:
        case StreamKind::CopyOut: communicating.emplace_back(span.begin, span.end); break;
        case StreamKind::Host:
        case StreamKind::Storage: break;
      }
    }
    join(computing);
    join(communicating);
    own.hidden = overlap(computing, communicating);
  }
  return classes;
}

std::vector<StageTimes> stage_times(const Plan& plan, const Trace& trace, const SumsByRole& sums) {
  std::vector<StageTimes> stages(static_cast<std::size_t>(std::max(plan.stages, 0)));
  for (std::size_t s = 0; s < trace.spans.size();) {
    const Span& first = trace.spans[s];
    const RoleId role_id = trace.classes[first.who.index()].role;
    const Role& role = plan.roles[role_id.index()];
    const Action& action = role.actions[static_cast<std::size_t>(first.action)];
    const bool computes = role.streams[first.stream.index()].kind == StreamKind::Compute;
    Nanoseconds busy = {};
    for (; s < trace.spans.size(); ++s) {
      const Span& span = trace.spans[s];
      if (span.who != first.who || span.stream != first.stream || span.action != first.action) break;
      busy += span.end - span.begin;
      const auto& what = plan.segments[action.segment.index()].instructions[static_cast<std::size_t>(span.instruction)].what;
      const auto* exchange = std::get_if<Exchange>(&what);
      if (exchange == nullptr || !between_roles(*exchange)) continue;
      if (computes) busy = busy - (span.end - span.begin);
      for (const Does& does : action.does)
        if (does.stage >= 0 && static_cast<std::size_t>(does.stage) < stages.size())
          shorten(stages[static_cast<std::size_t>(does.stage)].p2p, span.end - span.begin);
    }
    if (computes) credit(stages, action, busy, sums[role_id].weight_gradient(action.segment));
  }
  return stages;
}

}  // namespace foreshard
