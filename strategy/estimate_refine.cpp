// Isolated durations of a plan's actions, and the schedule's recurrence over them.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/memory_timeline.h"
#include "core/ranks.h"
#include "strategy/estimate.h"
#include "strategy/estimate_alone.h"
#include "strategy/estimate_solo.h"
#include "strategy/estimate_together.h"
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

constexpr int kBefore = 3;                       // actions that are played before the one that is measured
constexpr int kPasses = 5, kPassesTogether = 8;  // over the last backwards
constexpr double kSettled = 1e-6;                // of the whole

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
    if (actions[static_cast<std::size_t>(i)].does.empty())
      continue;  // gathers before the first forwards: late_start() has them
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

// Actions of one rank as they were played: {position in its list, which one that was added}.
using Played = std::vector<std::pair<std::size_t, std::size_t>>;

// From the last backward of a rank's first chunk to have one on, with the reductions in them, then what no backward belongs to.
Played add_finish(const Plan& plan, RoleId role, const std::vector<ScheduleOp>& list, const std::vector<double>& begins,
                  Solo& solo, std::size_t& added) {
  Played played;
  std::size_t position = 0;
  bool in_last = false;
  for (const Action& action : plan.roles[role.index()].actions) {
    const bool work = !action.does.empty() && action.does.front().work != Work::Update;
    if (work) {
      const ScheduleOp& op = list[position];
      in_last |= op.microbatch + 1 == plan.microbatches && (op.work == Work::B || op.work == Work::W);
      if (in_last) solo.wait_until(begins[position]), played.emplace_back(position, added);
      ++position;
    }
    if (in_last) solo.add(action), ++added;  // updates, and reductions that belong to no backward
  }
  return played;
}

// How long the actions took. The first one has nobody before it whose collectives are still under way: at least `usual`.
void read_durations(const Solo& solo, const Played& played, const std::vector<double>& begins, double usual,
                    std::vector<double>& exact) {
  for (std::size_t i = 0; i < played.size(); ++i) {
    const auto [position, index] = played[i];
    const double before = i > 0 ? solo.compute_end(played[i - 1].second) : 0, end = solo.compute_end(index);
    exact[position] = end - std::max(begins[position], before);
    if (i == 0) exact[position] = std::max(exact[position], usual);
  }
}

// When the last rank is done. Reductions slow the last backwards; what follows comes later, and so do meetings of stages. A few passes
// settle that. `together`: the ranks share links.
double finish_all(const Plan& plan, AloneTimes& alone, const ScheduleLists& lists, ScheduleTimes<double> times,
                  const ScheduleTiming<double>& usual, bool together) {
  const int passes = together ? kPassesTogether : kPasses;
  ScheduleTiming<double> timing = usual;
  Meetings known;
  double last = 0;
  for (int pass = 1;; ++pass) {
    Meetings found;
    double end = 0;
    const std::vector<std::vector<double>> before = std::exchange(times.exact, {});
    for (const auto& list : lists) times.exact.emplace_back(list.size(), -1.0);
    const auto read = [&](const Solo& solo, const Played& played, std::size_t r) {
      end = std::max(end, solo.end());
      const std::size_t first = played.front().first;
      read_durations(solo, played, timing.begin[r], usual.end[r][first] - usual.begin[r][first], times.exact[r]);
    };
    Solo all(plan, alone, {static_cast<std::int32_t>(plan.roles.size()) - 1}, &known, &found);
    std::vector<Played> played(plan.roles.size());
    std::size_t added = 0;
    for (std::size_t r = plan.roles.size(); r-- > 0;) {
      const RoleId role{static_cast<std::int32_t>(r)};
      if (together) {
        all.turn_to(role);
        played[r] = add_finish(plan, role, lists[r], timing.begin[r], all, added);
        continue;
      }
      Solo solo(plan, alone, role, &known, &found);
      std::size_t own = 0;
      played[r] = add_finish(plan, role, lists[r], timing.begin[r], solo, own);
      solo.run();
      read(solo, played[r], r);
    }
    if (together) all.run();
    for (std::size_t r = 0; together && r < played.size(); ++r) read(all, played[r], r);
    for (std::size_t r = 0; pass > 2 && r < before.size(); ++r)  // or two states may follow each other for ever
      for (std::size_t k = 0; k < before[r].size(); ++k) times.exact[r][k] = (times.exact[r][k] + before[r][k]) / 2;
    timing = *evaluate(lists, times);
    end = std::max(end, timing.makespan);
    if (pass == passes || (found == known && std::abs(end - last) <= kSettled * end)) return end;
    known = std::move(found), last = end;
  }
}

// Parameters that are gathered beside the first forwards hold them up: by how much the first backward of the worst rank comes
// later. What follows is as late.
double late_start(const Plan& plan, AloneTimes& alone, const ScheduleLists& lists, const ScheduleTiming<double>& timing,
                  bool together) {
  double latest = 0;
  Solo all(plan, alone, {0});
  std::vector<std::pair<std::size_t, double>> lasts;  // which one that was added, when it ends in `timing`
  std::size_t added = 0;
  for (std::size_t role = 0; role < plan.roles.size(); ++role) {
    std::optional<Solo> own;
    if (!together) own.emplace(plan, alone, RoleId{static_cast<std::int32_t>(role)}), added = 0;
    Solo& solo = together ? all : *own;
    solo.turn_to({static_cast<std::int32_t>(role)});
    std::size_t position = 0, last = 0;
    for (const Action& action : plan.roles[role].actions) {
      const bool work = !action.does.empty() && action.does.front().work != Work::Update;
      if (work && (position == lists[role].size() || lists[role][position].work != Work::F)) break;
      if (work) solo.wait_until(timing.begin[role][position]);
      solo.add(action);
      if (work) last = added, ++position;
      ++added;
    }
    if (position > 0) lasts.emplace_back(last, timing.end[role][position - 1]);
    if (together) continue;
    solo.run();
    if (position > 0) latest = std::max(latest, solo.compute_end(last) - lasts.back().second);
  }
  if (!together) return latest;
  all.run();
  for (const auto& [last, end] : lasts) latest = std::max(latest, all.compute_end(last) - end);
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
  auto timing = evaluate(lists, schedule_times(stages, schedule_entry(*s.schedule).splits, s.overlap.p2p));
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

// The schedule's recurrence over the stages' times, then what no backward belongs to.
void play_stages(const Plan& plan, AloneTimes& alone, const Strategy& s, const ScheduleLists& lists, int microbatches,
                 bool together, Estimate& estimate) {
  std::vector<StageDurations> stages = measure(plan, alone);
  if (together)
    stages = measure_together(plan, alone, stages, [&](const auto& durations) { return timing_of(s, lists, durations); });
  const ScheduleTiming<double> timing = timing_of(s, lists, stages);
  const int all = std::max(microbatches, plan.microbatches);
  const double further = all > plan.microbatches ? timing_of(s, lists_of(s, all), stages).makespan - timing.makespan : 0.0;
  const ScheduleTimes<double> times = schedule_times(stages, schedule_entry(*s.schedule).splits, s.overlap.p2p);
  double end = finish_all(plan, alone, lists, times, timing, together);
  if (s.overlap.parameters && (s.zero == 1 || s.zero == 2) && s.dp * s.cp > 1)
    end += late_start(plan, alone, lists, timing, together);
  for (int role = 0; role < s.pp; ++role) {
    double compute = 0, talk = 0;
    for (int chunk = 0; chunk < s.virtual_stages; ++chunk) {
      const auto stage = static_cast<std::size_t>(stage_of(*s.schedule, role, chunk, s.pp));
      compute += (stages[stage].forward + stages[stage].backward - stages[stage].communication) * all;
      talk += stages[stage].communication * all;
    }
    if (compute + talk > estimate.compute.value + estimate.communication.value)
      estimate.compute = {compute}, estimate.communication = {talk};
  }
  estimate.time = {end + further};
  estimate.skew = {skew_of(s, lists, plan.microbatches, stages, timing.makespan)};
  estimate.tail = {end - timing.makespan};
}

}  // namespace

Estimate refine(const Lowered& lowered, const Cluster& cluster, int microbatches, SharedStages shared) {
  const Plan& plan = lowered.plan;
  const Strategy& s = lowered.strategy;
  AloneTimes alone(plan, cluster);
  const ScheduleLists lists = lists_of(s, plan.microbatches);
  Estimate estimate;
  if (plan.roles.size() == 1)
    play_alone(plan, alone, lists, microbatches, estimate);
  else
    play_stages(plan, alone, s, lists, microbatches, shared == SharedStages::Together && stages_meet(plan, alone), estimate);
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
