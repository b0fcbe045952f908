#include "exec/interpreter/interpreter.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "exec/arithmetic/host_convert.h"

namespace foreshard {

// The times of only this number of runs are kept, so that a long training does not fill the memory. It is more than a rank can be ahead of
// another.
static constexpr int kMostKeptRuns = 64;

Interpreter::Interpreter(const Plan& plan, const Ranks& ranks, RankId rank, DeviceBackend& device, Communicator& communicator,
                         Stop& stop, const InterpreterOptions& options)
    : plan_(plan),
      ranks_(ranks),
      place_(place_of(plan, ranks, rank)),
      role_(plan.roles[ranks.role(rank).index()]),
      device_(device),
      communicator_(communicator),
      stop_(stop),
      options_(options),
      memory_(plan, ranks.role(rank), device, options.checks),
      steps_(steps_of(plan, ranks, rank)),
      order_(issue_order(role_)),
      running_(role_.streams.size()) {
  for (std::atomic<int>& step : running_) step.store(-1);
  for (std::size_t s = 0; s < steps_.size(); ++s)
    while (first_step_.size() <= static_cast<std::size_t>(steps_[s].action)) first_step_.push_back(s);
  first_step_.resize(role_.actions.size() + 1, steps_.size());
  bind();
  for (const Bound& bound : bound_)
    if (bound.scale_at.data) judge_ = &bound;
  kept_runs_ = std::min(options_.runs, kMostKeptRuns);
  spans_.resize(static_cast<std::size_t>(kept_runs_) * steps_.size());
  losses_.resize(static_cast<std::size_t>(options_.runs * losses_of_run_));
  scales_.resize(static_cast<std::size_t>(options_.runs));
}

void Interpreter::open() {
  std::vector<StreamId> used;
  for (const RankStep& step : steps_)
    if (std::find(used.begin(), used.end(), step.stream) == used.end()) used.push_back(step.stream);
  std::size_t commands = 1;
  for (const Bound& bound : bound_) commands += 2 + bound.waits.size();
  device_.open(used, events_, static_cast<int>(commands), *this);
}

void Interpreter::issue(int run, bool last) {
  for (std::int32_t action = 0; action < order_.ahead && begun_ < run; ++action) issue_action(action, run);
  begun_ = last ? run : run + 1;
  for (const IssueOrder::Issued& issued : order_.pass)
    if (!issued.ahead)
      issue_action(issued.action, run);
    else if (!last)
      issue_action(issued.action, run + 1);
}

void Interpreter::issue_action(int action, int run) {
  for (std::size_t s = first_step_[static_cast<std::size_t>(action)]; s < first_step_[static_cast<std::size_t>(action) + 1];
       ++s) {
    const StreamId stream = steps_[s].stream;
    for (const int event : bound_[s].waits) device_.wait(stream, event);
    device_.launch(stream, static_cast<int>(s), bound_[s].task.get(), run);
    if (bound_[s].record >= 0) device_.record(stream, bound_[s].record);
  }
}

void Interpreter::begins(int s, int run) {
  const auto at = static_cast<std::size_t>(s);
  const RankStep& step = steps_[at];
  running_[step.stream.index()].store(s, std::memory_order_relaxed);
  if (options_.before) options_.before(place_.rank, step.action, step.instruction, run);
  leave_when_stopped();
  memory_.acquire(bound_[at].acquires);
  StepSpan& span = this->span(run, at);
  span.ready = span.begin = device_.clock();
}

// A thread that returns from a hang after the run has failed must not access the plan, which may have been freed.
void Interpreter::leave_when_stopped() const {
  if (stop_.raised()) throw Stopped{};
}

void Interpreter::ends(int s, int run, const TaskTimes& times) {
  leave_when_stopped();
  const auto at = static_cast<std::size_t>(s);
  const Bound& bound = bound_[at];
  StepSpan& span = this->span(run, at);
  if (times.begin != 0) span.ready = span.begin = times.begin;
  span.begin = std::max(span.begin, times.met);
  span.end = std::max(times.end != 0 ? times.end : device_.clock(), span.begin + 1);
  span.own = times.own;
  span.count = bound.joined;
  const auto on_host = [&](const Operand& numbers) { return bound.kept ? times.kept : numbers; };
  if (bound.loss >= 0)
    host::load(on_host(bound.loss_at), 0, 1, &losses_[static_cast<std::size_t>(run * losses_of_run_ + bound.loss)]);
  if (bound.scale_at.data) scales_[static_cast<std::size_t>(run)] = read_loss_scale(on_host(bound.scale_at));
  if (bound.experts.counts()) {
    Counted& counted = counted_[run % 2];
    if (counted.run != run) counted = {.run = run};
    bound.experts.add_to(counted.counts, on_host(bound.experts.numbers), options_.routers.size());
  }
  memory_.release(bound.releases);
  running_[steps_[at].stream.index()].store(-1, std::memory_order_relaxed);
  ended_.fetch_add(1, std::memory_order_relaxed);
}

void Interpreter::fails(int step, const std::string& why) { stop_.raise(name(step) + ": " + why); }

std::string Interpreter::name(int step) const {
  const RankStep& at = steps_[static_cast<std::size_t>(step)];
  return name_of(plan_, ranks_, place_.rank, at.action, at.instruction);
}

std::string Interpreter::label(int step) const {
  const RankStep& at = steps_[static_cast<std::size_t>(step)];
  const Segment& segment = plan_.segments[role_.actions[static_cast<std::size_t>(at.action)].segment.index()];
  return segment.instructions[static_cast<std::size_t>(at.instruction)].name;
}

std::vector<Interpreter::Running> Interpreter::running() const {
  std::vector<Running> all;
  for (const std::atomic<int>& on_stream : running_)
    if (const int step = on_stream.load(std::memory_order_relaxed); step >= 0)
      all.push_back({step, bound_[static_cast<std::size_t>(step)].communicates});
  return all;
}

// All ranks of a tensor-parallel group compute the same loss; only the first one reports it.
double Interpreter::loss(int run) const {
  double sum = 0;
  if (place_.tp_rank > 0) return sum;
  for (int i = 0; i < losses_of_run_; ++i) sum += losses_[static_cast<std::size_t>(run * losses_of_run_ + i)];
  return sum;
}

LiveBytes Interpreter::peak(int run) const {
  struct Change {
    std::int64_t when = 0;
    std::size_t category = 0;
    Bytes bytes = {};
  };
  std::vector<Change> changes;
  const auto note = [&](std::int64_t when, int block, int sign) {
    const Buffer& buffer = memory_.buffer(block);
    if (buffer.space == Space::Device)
      changes.push_back({when, static_cast<std::size_t>(buffer.category), buffer.bytes * sign});
  };
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const StepSpan& span = spans(run)[s];
    for (const int block : bound_[s].acquires) note(span.begin, block, 1);
    for (const int block : bound_[s].releases) note(span.end, block, -1);
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.when != b.when ? a.when < b.when : a.bytes.value < 0 && b.bytes.value > 0;
  });
  LiveBytes live = memory_.live_between_runs(), peak = live;
  for (const Change& change : changes) {
    live[change.category] += change.bytes;
    if (sum(live) > sum(peak)) peak = live;
  }
  return peak;
}

}  // namespace foreshard
