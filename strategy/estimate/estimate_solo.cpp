#include "strategy/estimate/estimate_solo.h"

#include <algorithm>
#include <limits>

namespace foreshard {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLeastLeft = 0.02;  // of the compute units, as on the simulator
constexpr double kDone = 1e-15;      // seconds of work that rounding leaves

}  // namespace

Solo::Solo(const Plan& plan, AloneTimes& alone, RoleId role)
    : plan_(plan), alone_(alone), role_(role), costs_(&plan.costs.front()) {
  for (const CostTable& table : plan_.costs)
    if (table.device_kind == plan_.roles[role.index()].device_kind) costs_ = &table;
  lanes_.resize(plan_.roles[role.index()].streams.size());
}

Solo::Step Solo::step_of(const Instruction& run, const Cost& cost) {
  Step step{.run = &run, .lane = run.stream.index(), .setup = to_seconds(cost.busy).value, .share = cost.sm_share};
  if (std::holds_alternative<Compute>(run.what)) {
    step.work = std::exchange(step.setup, 0.0);
    return step;
  }
  step.kind = alone_.kind(role_, run);
  step.work = alone_.on_links(role_, run, cost);
  return step;
}

// A wait belongs to the newest record that was issued before it.
void Solo::bind(const Instruction& run, const Action& action, std::int32_t first, Step& step) const {
  for (const std::int32_t after : run.after) step.after.push_back(first + after);
  for (const EventUse& wait : run.waits)
    if (const auto found = events_.find({wait.event.value, slot(wait.slot, action)}); found != events_.end())
      step.after.push_back(found->second);
}

void Solo::add(const Action& action) {
  const Segment& segment = plan_.segments[action.segment.index()];
  const auto first = static_cast<std::int32_t>(steps_.size());
  const auto number = static_cast<std::int32_t>(last_compute_.size());
  for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
    const Instruction& run = segment.instructions[i];
    const auto index = static_cast<std::int32_t>(steps_.size());
    Step step = step_of(run, cost(action.segment, i));
    step.action = number, step.instruction = static_cast<std::int32_t>(i);
    bind(run, action, first, step);
    if (run.stream.value == 0) {
      step.not_before = std::exchange(not_before_, 0.0);
      newest_compute_ = index;
    }
    for (const EventUse& record : run.records) events_[{record.event.value, slot(record.slot, action)}] = index;
    lanes_[step.lane].steps.push_back(index);
    steps_.push_back(std::move(step));
  }
  last_compute_.push_back(newest_compute_);
}

// The next step of a lane, if what it waits for is done. A step without work is over at once.
bool Solo::begin_one(std::size_t number) {
  Lane& lane = lanes_[number];
  if (lane.running >= 0 || lane.next == lane.steps.size()) return false;
  const std::int32_t index = lane.steps[lane.next];
  Step& step = steps_[static_cast<std::size_t>(index)];
  if (step.begin < 0) {
    for (const std::int32_t after : step.after)
      if (steps_[static_cast<std::size_t>(after)].end < 0) return false;
    step.begin = std::max(now_, step.not_before);
  }
  if (step.begin > now_) return false;
  ++lane.next;
  Running under_way{.step = index,
                    .setup = step.setup,
                    .work = step.work,
                    .share = step.share,
                    .kind = step.kind,
                    .computes = std::holds_alternative<Compute>(step.run->what),
                    .aside = number != 0};
  if (const auto* what = std::get_if<Exchange>(&step.run->what); what && !what->to) {
    under_way.step = -1;
    running_.push_back(under_way);
    step.end = now_;
    return true;
  }
  if (step.setup + step.work <= 0) {
    step.end = now_;
    return true;
  }
  lane.running = index;
  running_.push_back(under_way);
  return true;
}

void Solo::set_speeds() {
  double taken = 0;
  talking_.clear();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const Running& each = running_[i];
    if (each.aside && !each.computes) taken += each.share;
    if (each.setup <= 0 && each.kind >= 0) talking_.emplace_back(each.kind, i);
  }
  for (Running& each : running_) each.speed = each.computes ? std::max(kLeastLeft, 1 - taken) : 1;
  if (talking_.size() < 2) return;
  kinds_.clear();
  for (const auto& [kind, i] : talking_) kinds_.push_back(kind);
  const std::vector<double>& speeds = alone_.speeds(kinds_);
  for (std::size_t i = 0; i < talking_.size(); ++i) running_[talking_[i].second].speed = speeds[i];
}

double Solo::next_moment() const {
  double next = kNever;
  for (const Running& each : running_) next = std::min(next, now_ + (each.setup > 0 ? each.setup : each.work / each.speed));
  for (const Lane& lane : lanes_)
    if (lane.running < 0 && lane.next < lane.steps.size())
      if (const double begin = steps_[static_cast<std::size_t>(lane.steps[lane.next])].begin; begin > now_)
        next = std::min(next, begin);
  return next;
}

void Solo::advance(double to) {
  const double passed = to - now_, close = kDone + 1e-14 * to;
  now_ = to;
  for (Running& each : running_) {
    double& left = each.setup > 0 ? each.setup : each.work;
    left -= passed * (each.setup > 0 ? 1 : each.speed);
    if (left <= close) left = 0;
  }
  for (const Running& each : running_)
    if (each.setup <= 0 && each.work <= 0 && each.step >= 0) {
      Step& step = steps_[static_cast<std::size_t>(each.step)];
      step.end = now_;
      lanes_[step.lane].running = -1;
    }
  std::erase_if(running_, [](const Running& each) { return each.setup <= 0 && each.work <= 0; });
}

void Solo::run() {
  for (;;) {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
        while (begin_one(lane)) more = true;
    }
    set_speeds();
    const double next = next_moment();
    if (next == kNever) break;
    advance(next);
  }
  for (const Step& step : steps_) {
    FS_ASSERT(step.end >= 0);
    end_ = std::max(end_, step.end);
  }
  for (const std::int32_t last : last_compute_)
    compute_ends_.push_back(last < 0 ? 0 : steps_[static_cast<std::size_t>(last)].end);
}

void Solo::write(std::vector<Span>& spans, std::int32_t number) const {
  for (const Step& step : steps_) {
    const Nanoseconds from = to_nanoseconds(Seconds{step.begin}), to = to_nanoseconds(Seconds{step.end});
    spans.push_back({.who = {role_.value},
                     .action = number + step.action,
                     .instruction = step.instruction,
                     .stream = step.run->stream,
                     .ready = from,
                     .begin = from,
                     .end = to});
  }
}

double Solo::talk(const Action& action) {
  const Segment& segment = plan_.segments[action.segment.index()];
  double seconds = 0;
  for (std::size_t i = 0; i < segment.instructions.size(); ++i)
    if (const Instruction& run = segment.instructions[i]; run.stream.value == 0 && std::holds_alternative<Collective>(run.what))
      seconds += alone_.duration(role_, run, cost(action.segment, i));
  return seconds;
}

double Solo::send(SegmentId id) {
  const Segment& segment = plan_.segments[id.index()];
  for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
    const auto* what = std::get_if<Exchange>(&segment.instructions[i].what);
    if (what && what->to && what->to->role_shift != 0) return alone_.duration(role_, segment.instructions[i], cost(id, i));
  }
  return 0;
}

std::int32_t Solo::slot(const Slot& slot, const Action& action) {
  if (const auto* fixed = std::get_if<std::int32_t>(&slot.which)) return *fixed;
  return action.args[std::get<ParamId>(slot.which).index()];
}

}  // namespace foreshard
