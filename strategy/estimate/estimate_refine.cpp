// refine: a plan replayed on the light clock; isolated durations of its actions, and the schedule's recurrence over them.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/plan/ranks.h"
#include "core/result/memory_timeline.h"
#include "replay/light_clock.h"
#include "replay/replay.h"
#include "strategy/estimate/estimate.h"
#include "strategy/estimate/estimate_alone.h"
#include "strategy/estimate/estimate_solo.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

const char* name_of(BoundBy bound) {
  switch (bound) {
    case BoundBy::Compute: return "compute";
    case BoundBy::TensorCommunication: return "tensor communication";
    case BoundBy::Pipeline: return "pipeline";
    case BoundBy::Gradients: return "gradients";
  }
  return "";
}

namespace {

constexpr int kBefore = 3;  // actions that are played before the one that is measured

struct Steady {
  double seconds = 0, communication = 0;
};

// What an action adds to the compute stream when those before it in the role's own order have been played: what they still
// have to reduce and what could be gathered meanwhile is theirs to share the links with.
Steady steady(const Plan& plan, AloneTimes& alone, RoleId role, int index) {
  const std::vector<Action>& actions = plan.roles[role.index()].actions;
  Solo solo(plan, alone, role);
  std::size_t added = 0;
  for (int i = std::max(0, index - kBefore); i <= index; ++i) {
    if (actions[static_cast<std::size_t>(i)].does.empty()) continue;  // gathers before the first forwards
    solo.add(actions[static_cast<std::size_t>(i)]);
    ++added;
  }
  solo.run();
  return {solo.compute_end(added - 1) - (added > 1 ? solo.compute_end(added - 2) : 0.0),
          solo.talk(actions[static_cast<std::size_t>(index)])};
}

// The action that stands for a stage's F or B: of the middle of the run, where nothing is last and, if it can be, nothing first. -1: none.
int typical(const Role& role, Work work, int stage) {
  std::vector<int> found;
  for (std::size_t i = 0; i < role.actions.size(); ++i)
    for (const Does& does : role.actions[i].does)
      if (does.work == work && does.stage == stage) found.push_back(static_cast<int>(i));
  return found.empty() ? -1 : found[(found.size() - 1) / 2];
}

// Of a backward in one piece: the kernels that make weight gradients only.
double weight_kernels(const Plan& plan, const Action& action) {
  const Segment& segment = plan.segments[action.segment.index()];
  const std::vector<Cost>& costs = plan.costs.front().by_segment[action.segment.index()];
  double seconds = 0;
  for (std::size_t i = 0; i < segment.instructions.size(); ++i)
    if (const auto* what = std::get_if<Compute>(&segment.instructions[i].what); what && what->phase == Phase::WeightGrad)
      seconds += to_seconds(costs[i].busy).value;
  return seconds;
}

std::vector<std::int32_t> stages_of(const Role& role) {
  std::vector<std::int32_t> stages;
  for (const Action& action : role.actions)
    for (const Does& does : action.does)
      if (does.work == Work::Update) stages.push_back(does.stage);  // each chunk has one
  return stages;
}

std::vector<StageDurations> measure(const Plan& plan, AloneTimes& alone) {
  std::vector<StageDurations> stages(static_cast<std::size_t>(plan.stages));
  const int roles = static_cast<int>(plan.roles.size());
  for (int r = 0; r < roles; ++r) {
    const RoleId role{r};
    const std::vector<Action>& actions = plan.roles[role.index()].actions;
    for (const std::int32_t stage : stages_of(plan.roles[role.index()])) {
      const int forward = typical(plan.roles[role.index()], Work::F, stage);
      const int weights = typical(plan.roles[role.index()], Work::W, stage);
      const int backward = typical(plan.roles[role.index()], weights < 0 ? Work::B : Work::I, stage);
      if (forward < 0 || backward < 0) continue;
      const Steady f = steady(plan, alone, role, forward), b = steady(plan, alone, role, backward);
      const Steady w = weights < 0 ? Steady{} : steady(plan, alone, role, weights);
      stages[static_cast<std::size_t>(stage)] = {
          .forward = f.seconds,
          .backward = b.seconds + w.seconds,
          .weights = weights < 0 ? weight_kernels(plan, actions[static_cast<std::size_t>(backward)]) : w.seconds,
          .communication = f.communication + b.communication + w.communication,
          .forward_communication = f.communication,
          .hop = Solo(plan, alone, role).send(actions[static_cast<std::size_t>(forward)].segment)};
    }
  }
  return stages;
}

// Transfers that do not overlap are part of the action that sends.
ScheduleTimes<double> schedule_times(const std::vector<StageDurations>& stages, bool splits, bool overlapped) {
  ScheduleTimes<double> times{.in_turn = overlapped};
  for (const StageDurations& stage : stages) {
    times.forward.push_back(stage.forward);
    times.input_grad.push_back(splits ? stage.backward - stage.weights : stage.backward);
    times.weight_grad.push_back(splits ? stage.weights : 0);
    times.hops.push_back(overlapped ? stage.hop : 0);
  }
  return times;
}

BoundBy bound(const Estimate& e) {
  const double rest = e.time.value - e.compute.value - e.communication.value - e.tail.value;
  const double most = std::max({e.compute.value, e.communication.value, e.tail.value, rest});
  if (most == e.compute.value) return BoundBy::Compute;
  if (most == e.communication.value) return BoundBy::TensorCommunication;
  return most == rest ? BoundBy::Pipeline : BoundBy::Gradients;
}

void add_memory(const Plan& plan, const Cluster& cluster, Estimate& estimate) {
  bool first = true;
  for (const Role& role : plan.roles) {
    const Bytes peak = arena_bytes(role, Space::Device) + plan.framework;
    const Bytes margin = gpu_of(cluster, role.device_kind).memory - plan.reserve - peak;
    estimate.peak = std::max(estimate.peak, peak);
    if (first || margin < estimate.margin) estimate.margin = margin;
    first = false;
  }
}

ScheduleLists lists_of(const Strategy& s, int microbatches) {
  return schedule_entry(*s.schedule).lists({.p = s.pp, .m = microbatches, .v = s.virtual_stages, .g = s.microbatch_group});
}

ScheduleTiming<double> timing_of(const Strategy& s, const ScheduleLists& lists, const std::vector<StageDurations>& stages) {
  auto timing = evaluate(lists, schedule_times(stages, schedule_entry(*s.schedule).splits, s.overlap->p2p));
  if (!timing) throw Error("schedule " + schedule_entry(*s.schedule).name + " deadlocks");
  return std::move(*timing);
}

}  // namespace

std::vector<StageDurations> stage_durations(const Plan& plan, const Cluster& cluster) {
  AloneTimes alone(plan, cluster);
  return measure(plan, alone);
}

namespace {

// What the compute stream of one class does in forwards and backwards.
struct ComputeStream {
  double compute = 0, communication = 0;  // seconds, with what kernels on other streams slow them
  double total() const { return compute + communication; }
};

// Seconds of computes in a span. Of one that covers collectives, too, as long as they are by themselves.
double compute_in(const Plan& plan, const CostTable& costs, const Span& span, SegmentId segment) {
  const std::vector<Instruction>& instructions = plan.segments[segment.index()].instructions;
  double seconds = 0;
  bool communicates = false;
  for (std::int32_t i = span.instruction, left = span.count; left > 0; ++i) {
    const Instruction& instruction = instructions[static_cast<std::size_t>(i)];
    if (instruction.stream != span.stream) continue;
    --left;
    if (std::holds_alternative<Compute>(instruction.what))
      seconds += to_seconds(costs.by_segment[segment.index()][static_cast<std::size_t>(i)].busy).value;
    communicates = communicates || std::holds_alternative<Collective>(instruction.what);
  }
  return communicates ? seconds : to_seconds(span.end - span.begin).value;
}

const CostTable& costs_of(const Plan& plan, const Role& role) {
  return *std::find_if(plan.costs.begin(), plan.costs.end(),
                       [&](const CostTable& costs) { return costs.device_kind == role.device_kind; });
}

bool is_exchange(const Plan& plan, const Span& span, SegmentId segment) {
  return std::holds_alternative<Exchange>(
      plan.segments[segment.index()].instructions[static_cast<std::size_t>(span.instruction)].what);
}

// Of the busiest class; the last backward of all ends at `last_backward`.
ComputeStream busiest(const Plan& plan, const Trace& trace, Nanoseconds& last_backward) {
  std::vector<ComputeStream> streams(trace.classes.size());
  for (const Span& span : trace.spans) {
    const Role& role = plan.roles[trace.classes[span.who.index()].role.index()];
    const Action& action = role.actions[static_cast<std::size_t>(span.action)];
    if (span.stream.value != 0 || action.does.empty() || action.does.front().work == Work::Update) continue;
    last_backward = std::max(last_backward, span.end);
    if (is_exchange(plan, span, action.segment)) continue;
    ComputeStream& stream = streams[span.who.index()];
    const double compute = compute_in(plan, costs_of(plan, role), span, action.segment);
    stream.compute += compute;
    stream.communication += to_seconds(span.end - span.begin).value - compute;
  }
  return *std::max_element(streams.begin(), streams.end(),
                           [](const ComputeStream& a, const ComputeStream& b) { return a.total() < b.total(); });
}

// Two runs in a row without a barrier ("optimizer post-validation", Qi et al. 2024, section 4): by how much they are shorter than
// twice one.
double skew_of(const Plan& plan, const Cluster& cluster, double makespan) {
  player::LightClock clock;
  const ReplayOptions twice{.granularity = Granularity::Stage, .one_class_per_role = true, .memory = false, .runs = 2};
  return 2 * makespan - replay(plan, cluster, clock, twice).makespan_s;
}

}  // namespace

Estimate refine(const Lowered& lowered, const Cluster& cluster, int microbatches) {
  const Plan& plan = lowered.plan;
  const Strategy& s = lowered.strategy;
  player::LightClock clock;
  const Result played =
      replay(plan, cluster, clock, {.granularity = Granularity::Stage, .one_class_per_role = true, .memory = false});
  const int all = std::max(microbatches, plan.microbatches);
  const double times = static_cast<double>(all) / plan.microbatches;
  Nanoseconds last_backward = {};
  const ComputeStream stream = busiest(plan, played.trace, last_backward);
  Estimate estimate{.time = {played.makespan_s},
                    .compute = {stream.compute * times},
                    .communication = {stream.communication * times},
                    .tail = {played.makespan_s - to_seconds(last_backward).value}};
  // One stage waits for no other one: what it waits for is data-parallel communication.
  if (plan.roles.size() == 1) estimate.tail.value = played.makespan_s - stream.total();
  if (schedule_entry(*s.schedule).splits) estimate.skew = {skew_of(plan, cluster, played.makespan_s)};
  if (all > plan.microbatches) {  // every further one takes what the schedule's recurrence says
    const std::vector<StageDurations> stages = stage_durations(plan, cluster);
    estimate.time.value +=
        timing_of(s, lists_of(s, all), stages).makespan - timing_of(s, lists_of(s, plan.microbatches), stages).makespan;
  }
  estimate.bound_by = bound(estimate);
  add_memory(plan, cluster, estimate);
  return estimate;
}

Trace refined_trace(const Lowered& lowered, const Cluster& cluster) {
  const Plan& plan = lowered.plan;
  const Strategy& s = lowered.strategy;
  AloneTimes alone(plan, cluster);
  const ScheduleLists lists = lists_of(s, plan.microbatches);
  const ScheduleTiming<double> timing = timing_of(s, lists, measure(plan, alone));
  const Ranks ranks(plan);
  Trace trace;
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(plan.roles.size()); ++r) {
    const Role& role = plan.roles[RoleId{r}.index()];
    RankClass who{.role = {r}};
    for (int i = 0; i < ranks.count({r}); ++i) who.members.push_back({ranks.first({r}).value + i});
    trace.classes.push_back(std::move(who));
    Solo solo(plan, alone, {r});
    std::size_t position = 0;
    for (const Action& action : role.actions) {
      const bool work = !action.does.empty() && action.does.front().work != Work::Update;
      if (work && plan.roles.size() > 1) solo.wait_until(timing.begin[RoleId{r}.index()][position++]);
      solo.add(action);
    }
    solo.run();
    solo.write(trace.spans, 0);
    trace.makespan = std::max(trace.makespan, to_nanoseconds(Seconds{solo.end()}));
  }
  std::stable_sort(trace.spans.begin(), trace.spans.end(), [](const Span& a, const Span& b) {
    return std::pair(a.who.value, a.stream.value) < std::pair(b.who.value, b.stream.value);
  });
  return trace;
}

}  // namespace foreshard
