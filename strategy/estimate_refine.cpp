// Isolated durations of a plan's actions, and the schedule's recurrence over them.
#include <algorithm>
#include <map>

#include "core/memory_timeline.h"
#include "core/ranks.h"
#include "strategy/estimate.h"
#include "strategy/estimate_alone.h"
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

struct Steady {
  double seconds = 0, communication = 0;
};

// Played three times in a row: the third adds what one more costs in the steady state. Gathers and reductions of ZeRO run over
// the same links: together they take at least the sum of their times.
Steady steady(const Plan& plan, AloneTimes& alone, RoleId role, const Action& action, bool in_turn) {
  Solo solo(plan, alone, role, in_turn);
  solo.play(action);
  solo.play(action);
  const double before = solo.compute_end(), talked = solo.communication(), beside = solo.beside();
  solo.play(action);
  return {std::max(solo.compute_end() - before, solo.beside() - beside), solo.communication() - talked};
}

// The action that stands for a stage's F or B: of the middle of the run, where nothing is first or last.
const Action* typical(const Role& role, Work work, int stage) {
  std::vector<const Action*> found;
  for (const Action& action : role.actions)
    for (const Does& does : action.does)
      if (does.work == work && does.stage == stage) found.push_back(&action);
  return found.empty() ? nullptr : found[found.size() / 2];
}

std::vector<StageDurations> measure(const Plan& plan, AloneTimes& alone, bool in_turn) {
  std::vector<StageDurations> stages(static_cast<std::size_t>(plan.stages));
  const int roles = static_cast<int>(plan.roles.size());
  for (int r = 0; r < roles; ++r) {
    const RoleId role{r};
    for (int stage = r; stage < plan.stages; stage += roles) {
      StageDurations& of = stages[static_cast<std::size_t>(stage)];
      const Action* forward = typical(plan.roles[role.index()], Work::F, stage);
      const Action* backward = typical(plan.roles[role.index()], Work::B, stage);
      if (!forward || !backward) continue;
      const Steady f = steady(plan, alone, role, *forward, in_turn), b = steady(plan, alone, role, *backward, in_turn);
      of = {f.seconds, b.seconds, f.communication + b.communication, Solo(plan, alone, role, in_turn).send(forward->segment)};
    }
  }
  return stages;
}

// Transfers that do not overlap are part of the action that sends.
ScheduleTimes<double> schedule_times(const std::vector<StageDurations>& stages, bool overlapped) {
  ScheduleTimes<double> times;
  double hops = 0;
  for (const StageDurations& stage : stages) {
    times.forward.push_back(stage.forward);
    times.input_grad.push_back(stage.backward);
    times.weight_grad.push_back(0);
    hops += stage.hop;
  }
  if (stages.size() > 1 && overlapped) times.latency = hops / static_cast<double>(stages.size() - 1);
  return times;
}

// When a rank is done: its last backwards with the reductions in them, then what no backward belongs to. Reductions and gathers
// share the links, so they take turns.
double finish(const Plan& plan, AloneTimes& alone, RoleId role, const std::vector<ScheduleOp>& list,
              const std::vector<double>& begins, const Meetings& known, Meetings& found) {
  Solo solo(plan, alone, role, true, &known, &found);
  std::size_t position = 0;
  bool in_last = false;
  for (const Action& action : plan.roles[role.index()].actions) {
    const bool work = !action.does.empty() && action.does.front().work != Work::Update;
    if (work) {
      in_last |= list[position].work == Work::B && list[position].microbatch + 1 == plan.microbatches;
      if (in_last) solo.wait_until(begins[position]);
      ++position;
    }
    if (in_last) solo.play(action);  // updates, and reductions that belong to no backward
  }
  return solo.end();
}

// When the last rank is done. A meeting moves what follows it, and with it the next meeting: a few passes.
double finish_all(const Plan& plan, AloneTimes& alone, const ScheduleLists& lists, const ScheduleTiming<double>& timing) {
  Meetings known;
  for (int pass = 0;; ++pass) {
    Meetings found;
    double end = timing.makespan;
    for (std::size_t role = 0; role < plan.roles.size(); ++role)
      end =
          std::max(end, finish(plan, alone, {static_cast<std::int32_t>(role)}, lists[role], timing.begin[role], known, found));
    if (pass == 3 || found == known) return end;
    known = std::move(found);
  }
}

// Parameters that are gathered beside the first forwards hold them up: by how much the first backward of the worst rank comes
// later. What follows is as late.
double late_start(const Plan& plan, AloneTimes& alone, const ScheduleLists& lists, const ScheduleTiming<double>& timing) {
  double latest = 0;
  for (std::size_t role = 0; role < plan.roles.size(); ++role) {
    Solo solo(plan, alone, {static_cast<std::int32_t>(role)}, true);
    std::size_t position = 0;
    double late = 0;
    for (const Action& action : plan.roles[role].actions) {
      const bool work = !action.does.empty() && action.does.front().work != Work::Update;
      if (work && (position == lists[role].size() || lists[role][position].work != Work::F)) break;
      if (work) solo.wait_until(timing.begin[role][position]);
      solo.play(action);
      if (work) late = solo.compute_end() - timing.end[role][position++];
    }
    latest = std::max(latest, late);
  }
  return latest;
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
  auto timing = evaluate(lists, schedule_times(stages, s.overlap.p2p));
  if (!timing) throw Error("schedule " + schedule_entry(*s.schedule).name + " deadlocks");
  return std::move(*timing);
}

bool links_in_turn(const Strategy& s) { return s.zero == 3 && !s.overlap.parameters; }

}  // namespace

std::vector<StageDurations> stage_durations(const Plan& plan, const Cluster& cluster) {
  AloneTimes alone(plan, cluster);
  return measure(plan, alone, false);
}

Estimate refine(const Lowered& lowered, const Cluster& cluster, int microbatches) {
  const Plan& plan = lowered.plan;
  const Strategy& s = lowered.strategy;
  AloneTimes alone(plan, cluster);
  const std::vector<StageDurations> stages = measure(plan, alone, links_in_turn(s));
  const ScheduleLists lists = lists_of(s, plan.microbatches);
  const ScheduleTiming<double> timing = timing_of(s, lists, stages);
  const int all = std::max(microbatches, plan.microbatches);
  const double further = all > plan.microbatches ? timing_of(s, lists_of(s, all), stages).makespan - timing.makespan : 0.0;
  Estimate estimate;
  double end = finish_all(plan, alone, lists, timing);
  if (s.overlap.parameters && (s.zero == 1 || s.zero == 2)) end += late_start(plan, alone, lists, timing);
  for (int role = 0; role < s.pp; ++role) {
    const auto at = static_cast<std::size_t>(role);
    double compute = 0, talk = 0;
    for (std::size_t stage = at; stage < stages.size(); stage += static_cast<std::size_t>(s.pp)) {
      compute += (stages[stage].forward + stages[stage].backward - stages[stage].communication) * all;
      talk += stages[stage].communication * all;
    }
    if (compute + talk > estimate.compute.value + estimate.communication.value)
      estimate.compute = {compute}, estimate.communication = {talk};
  }
  estimate.time = {end + further};
  estimate.tail = {end - timing.makespan};
  estimate.bound_by = bound(estimate);
  add_memory(plan, cluster, estimate);
  return estimate;
}

Trace refined_trace(const Lowered& lowered, const Cluster& cluster) {
  const Plan& plan = lowered.plan;
  const Strategy& s = lowered.strategy;
  AloneTimes alone(plan, cluster);
  const bool in_turn = links_in_turn(s);
  const ScheduleLists lists = lists_of(s, plan.microbatches);
  const ScheduleTiming<double> timing = timing_of(s, lists, measure(plan, alone, in_turn));
  const Ranks ranks(plan);
  Trace trace;
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(plan.roles.size()); ++r) {
    const Role& role = plan.roles[RoleId{r}.index()];
    RankClass who{.role = {r}};
    for (int i = 0; i < ranks.count({r}); ++i) who.members.push_back({ranks.first({r}).value + i});
    trace.classes.push_back(std::move(who));
    Solo solo(plan, alone, {r}, in_turn);
    std::size_t position = 0;
    for (std::int32_t a = 0; a < static_cast<std::int32_t>(role.actions.size()); ++a) {
      const Action& action = role.actions[static_cast<std::size_t>(a)];
      const bool work = !action.does.empty() && action.does.front().work != Work::Update;
      if (work) solo.wait_until(timing.begin[RoleId{r}.index()][position++]);
      solo.play(action, &trace.spans, a);
    }
    trace.makespan = std::max(trace.makespan, to_nanoseconds(Seconds{solo.end()}));
  }
  std::stable_sort(trace.spans.begin(), trace.spans.end(), [](const Span& a, const Span& b) {
    return std::pair(a.who.value, a.stream.value) < std::pair(b.who.value, b.stream.value);
  });
  return trace;
}

}  // namespace foreshard
