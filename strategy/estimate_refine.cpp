// refine: a plan in time order. Isolated durations of its actions, and the schedule's recurrence over them.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/memory_timeline.h"
#include "core/ranks.h"
#include "strategy/estimate.h"
#include "strategy/estimate_alone.h"
#include "strategy/estimate_iteration.h"
#include "strategy/estimate_solo.h"
#include "strategy/schedule.h"

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

// Two steps in a row, each rank beginning its next one as soon as its own is done ("optimizer post-validation", Qi et al. 2024,
// section 4): by how much they are shorter than twice one.
double skew_of(const Strategy& s, ScheduleLists lists, int microbatches, const std::vector<StageDurations>& stages,
               double makespan) {
  if (!schedule_entry(*s.schedule).splits) return 0;
  for (auto& list : lists)
    for (std::size_t k = 0, one = list.size(); k < one; ++k)
      list.push_back({list[k].work, list[k].stage, list[k].microbatch + microbatches});
  return 2 * makespan - timing_of(s, lists, stages).makespan;
}

}  // namespace

std::vector<StageDurations> stage_durations(const Plan& plan, const Cluster& cluster) {
  AloneTimes alone(plan, cluster);
  return measure(plan, alone);
}

namespace {

// A pipeline of one stage waits for nobody: its actions as they are issued. Of many micro-batches three and the last one are
// played; the others take what the third takes.
void play_alone(const Plan& plan, AloneTimes& alone, const ScheduleLists& lists, int microbatches, Estimate& estimate) {
  constexpr int kPlayed = 3;
  Solo solo(plan, alone, {0});
  std::vector<int> of;  // [added]: micro-batch, -1 none
  std::size_t position = 0;
  double talk = 0;
  for (const Action& action : plan.roles.front().actions) {
    const bool work = !action.does.empty() && action.does.front().work != Work::Update;
    const int microbatch = work ? lists.front()[position++].microbatch : -1;
    if (microbatch >= kPlayed && microbatch + 1 < plan.microbatches) continue;
    if (microbatch == 0) talk += solo.talk(action);
    solo.add(action), of.push_back(microbatch);
  }
  solo.run();
  const int third = std::min({kPlayed, plan.microbatches}) - 1;
  double last = 0, each = 0;  // end of the last backward; what the third micro-batch adds to the compute stream
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (of[i] >= 0) last = solo.compute_end(i);
    if (of[i] == third) each += solo.compute_end(i) - (i > 0 ? solo.compute_end(i - 1) : 0.0);
  }
  const int all = std::max(microbatches, plan.microbatches), played = std::min(plan.microbatches, kPlayed + 1);
  estimate.time = {solo.end() + each * (all - played)};
  estimate.tail = {solo.end() - last};
  estimate.communication = {talk * all};
  estimate.compute = {each * all - estimate.communication.value};
}

// All ranks together, in time order. Micro-batches that the plan does not have take what the schedule's recurrence says.
void play_stages(const Plan& plan, AloneTimes& alone, const Strategy& s, int microbatches, Estimate& estimate) {
  const Iteration played = play_iteration(plan, alone);
  const int all = std::max(microbatches, plan.microbatches);
  const double times = static_cast<double>(all) / plan.microbatches;
  estimate.time = {played.end};
  estimate.tail = {played.end - played.last_backward};
  estimate.compute = {played.compute * times}, estimate.communication = {played.communication * times};
  if (all == plan.microbatches && !schedule_entry(*s.schedule).splits) return;
  const std::vector<StageDurations> stages = measure(plan, alone);
  const ScheduleLists lists = lists_of(s, plan.microbatches);
  const double makespan = timing_of(s, lists, stages).makespan;
  if (all > plan.microbatches) estimate.time.value += timing_of(s, lists_of(s, all), stages).makespan - makespan;
  estimate.skew = {skew_of(s, lists, plan.microbatches, stages, makespan)};
}

}  // namespace

Estimate refine(const Lowered& lowered, const Cluster& cluster, int microbatches) {
  const Plan& plan = lowered.plan;
  const Strategy& s = lowered.strategy;
  AloneTimes alone(plan, cluster);
  Estimate estimate;
  if (plan.roles.size() == 1)
    play_alone(plan, alone, lists_of(s, plan.microbatches), microbatches, estimate);
  else
    play_stages(plan, alone, s, microbatches, estimate);
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
