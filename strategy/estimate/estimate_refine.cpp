// refine: a plan replayed on the light clock; isolated durations of its actions, and the schedule's recurrence over them.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/plan/cost_tables.h"
#include "core/result/memory_timeline.h"
#include "replay/light_clock.h"
#include "replay/replay.h"
#include "strategy/estimate/estimate.h"
#include "strategy/estimate/isolated_action.h"
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

// The action that represents a stage's F or B: one in the middle of the run, neither the last nor, if possible, the first. -1: none.
int typical(const Role& role, Work work, int stage) {
  std::vector<int> found;
  for (std::size_t i = 0; i < role.actions.size(); ++i)
    for (const Does& does : role.actions[i].does)
      if (does.work == work && does.stage == stage) found.push_back(static_cast<int>(i));
  return found.empty() ? -1 : found[(found.size() - 1) / 2];
}

bool is_cell(const Role& role, int action) {
  return action >= 0 && role.actions[static_cast<std::size_t>(action)].does.size() > 1;
}

// The action of only this work on the stage, in schedules of cells one of the first forwards or of the last backwards. -1: none.
int lone(const Role& role, Work work, int stage) {
  for (std::size_t i = 0; i < role.actions.size(); ++i)
    if (const std::vector<Does>& does = role.actions[i].does;
        does.size() == 1 && does.front().work == work && does.front().stage == stage)
      return static_cast<int>(i);
  return -1;
}

// Of the time of a cell the share of its forward: as forward and backward take it alone.
template <class SecondsOf>
double forward_share(const Role& role, int stage, const SecondsOf& seconds_of) {
  const int forward = lone(role, Work::F, stage), whole = lone(role, Work::B, stage);
  const int backward = whole < 0 ? lone(role, Work::I, stage) : whole;
  if (forward < 0 || backward < 0) return 0.5;
  const double f = seconds_of(forward), both = f + seconds_of(backward);
  return both > 0 ? f / both : 0.5;
}

// Seconds of the kernels in an unsplit backward that compute weight gradients only.
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

// The actions that stand for a stage; -1: none.
struct Typical {
  int forward = -1, backward = -1, weights = -1;
};
Typical typical(const Role& role, int stage) {
  const int weights = typical(role, Work::W, stage);
  return {typical(role, Work::F, stage), typical(role, weights < 0 ? Work::B : Work::I, stage), weights};
}

// A cell takes the time of a forward and a backward, or of a forward and the first half of a split backward.
void share_cells(const Role& role, const Typical& of, double share, StageDurations& stage) {
  const double apart = of.weights < 0 ? 0 : stage.weights;
  if (is_cell(role, of.forward)) stage.forward *= share;
  if (is_cell(role, of.backward)) stage.backward = apart + (stage.backward - apart) * (1 - share);
}

// visit(role, stage, its typical actions)
template <class Visit>
void each_stage(const Plan& plan, Visit visit) {
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(plan.roles.size()); ++r)
    for (const std::int32_t stage : stages_of(plan.roles[static_cast<std::size_t>(r)]))
      if (const Typical of = typical(plan.roles[static_cast<std::size_t>(r)], stage); of.forward >= 0 && of.backward >= 0)
        visit(RoleId{r}, static_cast<std::size_t>(stage), of);
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
  return schedule_entry(*s.pipeline.schedule).lists(schedule_shape(s, microbatches));
}

ScheduleTiming<double> timing_of(const Strategy& s, const ScheduleLists& lists, std::vector<StageDurations> stages) {
  const ScheduleEntry& entry = schedule_entry(*s.pipeline.schedule);
  const std::size_t of_route = stages.size();
  for (std::size_t stage = 0; entry.routes == 2 && stage < of_route; ++stage) stages.push_back(stages[stage]);
  auto times = schedule_times(stages, entry.splits, s.communication.overlap->p2p);
  times.routes = entry.routes;
  auto timing = evaluate(lists, times);
  if (!timing) throw Error("schedule " + entry.name + " deadlocks");
  return std::move(*timing);
}

}  // namespace

std::vector<StageDurations> stage_durations(const Plan& plan, const Cluster& cluster) {
  IsolatedTimes alone(plan, cluster);
  std::vector<StageDurations> stages(static_cast<std::size_t>(plan.stages));
  each_stage(plan, [&](RoleId role, std::size_t stage, const Typical& of) {
    const auto times = [&](int action) { return isolated_action(plan, alone, role, action); };
    const IsolatedAction f = times(of.forward), b = times(of.backward), w = times(of.weights);
    const Action& backward = plan.roles[role.index()].actions[static_cast<std::size_t>(of.backward)];
    stages[stage] = {.forward = f.whole,
                     .backward = b.whole + w.whole,
                     .weights = of.weights < 0 ? weight_kernels(plan, backward) : w.whole,
                     .communication = f.communication() + b.communication() + w.communication(),
                     .forward_communication = f.communication(),
                     .hop = f.send};
    const double share =
        forward_share(plan.roles[role.index()], static_cast<int>(stage), [&](int action) { return times(action).whole; });
    share_cells(plan.roles[role.index()], of, share, stages[stage]);
  });
  return stages;
}

namespace {

// What one class does in forwards and backwards.
struct ComputeStream {
  double compute = 0, communication = 0;  // seconds, including slow-down by kernels on other streams
  double total() const { return compute + communication; }
};

// Seconds of computes in a span. In a span that also covers collectives they count with their isolated times.
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

// Communication between operators: of activations, not of parameters or gradients, and not to another stage.
bool is_between_operators(const Role& role, const Instruction& run) {
  if (const auto* exchange = std::get_if<Exchange>(&run.what))
    return (exchange->to ? *exchange->to : *exchange->from).role_shift == 0;
  return std::holds_alternative<Collective>(run.what) && std::ranges::all_of(run.writes, [&](const Use& use) {
           const Category category = role.buffers[use.buffer.index()].category;
           return category == Category::Activations || category == Category::Transient;
         });
}

using Times = std::vector<std::pair<Nanoseconds, Nanoseconds>>;  // begins and ends

// Of the pauses of `computing` the part in which one of `others` runs. Sorts both.
double paused_beside(Times& computing, Times& others) {
  std::ranges::sort(computing);
  std::ranges::sort(others);
  Nanoseconds done = {}, sum = {};  // `done`: until here it computes, or the pause is counted
  auto other = others.begin();
  const auto count_until = [&](Nanoseconds end) {
    for (; other != others.end() && other->first < end; ++other) {
      const Nanoseconds from = std::max(done, other->first), until = std::min(end, other->second);
      if (until > from) sum += until - from, done = until;
      if (other->second > end) break;
    }
  };
  for (const auto& [begin, end] : computing) {
    if (begin > done) count_until(begin);
    done = std::max(done, end);
  }
  return to_seconds(sum).value;
}

// The busiest class. Sets `last_backward` to the end of the last backward of all classes.
ComputeStream busiest(const Plan& plan, const std::vector<RankClass>& classes, std::span<const Span> spans,
                      Nanoseconds& last_backward) {
  struct Class {
    ComputeStream stream = {};
    Times computing = {}, others = {};
  };
  std::vector<Class> all(classes.size());
  for (const Span& span : spans) {
    const Role& role = plan.roles[classes[span.who.index()].role.index()];
    const Action& action = role.actions[static_cast<std::size_t>(span.action)];
    if (action.does.empty() || action.does.front().work == Work::Update) continue;
    Class& of = all[span.who.index()];
    const Instruction& first = plan.segments[action.segment.index()].instructions[static_cast<std::size_t>(span.instruction)];
    if (span.stream.value != 0) {
      if (is_between_operators(role, first)) of.others.emplace_back(span.begin, span.end);
      continue;
    }
    last_backward = std::max(last_backward, span.end);
    if (std::holds_alternative<Exchange>(first.what)) continue;
    of.computing.emplace_back(span.begin, span.end);
    const double compute = compute_in(plan, costs_of(plan, role), span, action.segment);
    of.stream.compute += compute;
    of.stream.communication += to_seconds(span.end - span.begin).value - compute;
  }
  ComputeStream most;
  for (Class& of : all) {
    of.stream.communication += paused_beside(of.computing, of.others);
    if (of.stream.total() > most.total()) most = of.stream;
  }
  return most;
}

// [class][action]: seconds for which the action occupies the compute stream: from the end of the previous action, or the arrival of its
// input, to the end of its computes. Waiting for its own communication counts.
std::vector<std::vector<double>> occupied(const Plan& plan, const std::vector<RankClass>& classes,
                                          std::span<const Span> spans) {
  struct Times {
    double begin = 0, end = 0;
  };
  std::vector<std::vector<Times>> times(classes.size());
  for (std::size_t who = 0; who < classes.size(); ++who)
    times[who].resize(plan.roles[classes[who].role.index()].actions.size());
  const auto instruction_of = [&](const Span& span) -> const Instruction& {
    const Action& action = plan.roles[classes[span.who.index()].role.index()].actions[static_cast<std::size_t>(span.action)];
    return plan.segments[action.segment.index()].instructions[static_cast<std::size_t>(span.instruction)];
  };
  for (const Span& span : spans) {
    Times& of = times[span.who.index()][static_cast<std::size_t>(span.action)];
    const auto* exchange = std::get_if<Exchange>(&instruction_of(span).what);
    const double end = to_seconds(span.end).value;
    if (exchange && exchange->from && exchange->from->role_shift != 0)  // not a ring of context parallelism within the action
      of.begin = std::max(of.begin, end);
    else if (!exchange && span.stream.value == 0)
      of.end = std::max(of.end, end);
  }
  std::vector<std::vector<double>> seconds(classes.size());
  for (std::size_t who = 0; who < classes.size(); ++who) {
    double before = 0;
    for (const Times& of : times[who]) {
      seconds[who].push_back(std::max(0.0, of.end - std::max(before, of.begin)));
      before = std::max(before, of.end);
    }
  }
  return seconds;
}

// stage_durations with the durations that actions in the middle of the replay took.
std::vector<StageDurations> steady_durations(const Plan& plan, const Cluster& cluster, const std::vector<RankClass>& classes,
                                             std::span<const Span> spans) {
  std::vector<StageDurations> stages = stage_durations(plan, cluster);
  const std::vector<std::vector<double>> seconds = occupied(plan, classes, spans);
  each_stage(plan, [&](RoleId role, std::size_t stage, const Typical& of) {
    const auto who = std::ranges::find(classes, role, &RankClass::role);
    const auto taken = [&](int action) {
      return action < 0 ? 0 : seconds[static_cast<std::size_t>(who - classes.begin())][static_cast<std::size_t>(action)];
    };
    stages[stage].forward = taken(of.forward), stages[stage].backward = taken(of.backward) + taken(of.weights);
    if (of.weights >= 0) stages[stage].weights = taken(of.weights);
    const Role& of_stage = plan.roles[role.index()];
    share_cells(of_stage, of, forward_share(of_stage, static_cast<int>(stage), taken), stages[stage]);
  });
  return stages;
}

double makespan_by_lists(const Strategy& s, int microbatches, const std::vector<StageDurations>& stages) {
  return timing_of(s, lists_of(s, microbatches), stages).makespan;
}

// Two steps in a row without a barrier ("optimizer post-validation", Qi et al. 2024, section 4): by how much they are shorter than twice
// one. By the recurrence of the schedule, because in the plan the update may wait for all ranks, for the norm of all gradients.
double skew_by_lists(const Strategy& s, int microbatches, const std::vector<StageDurations>& stages) {
  const ScheduleLists lists = lists_of(s, microbatches);
  ScheduleLists twice = lists;
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    for (ScheduleOp op : lists[rank]) op.microbatch += microbatches, twice[rank].push_back(op);
  return 2 * timing_of(s, lists, stages).makespan - timing_of(s, twice, stages).makespan;
}

}  // namespace

ReplayedPlan::ReplayedPlan(const Lowered& lowered, const Cluster& cluster, bool longer)
    : strategy_(lowered.strategy), microbatches_(lowered.plan.microbatches) {
  const Plan& plan = lowered.plan;
  player::LightClock clock;
  const Replay replay(plan, cluster, {.granularity = Granularity::Stage, .one_class_per_role = true, .memory = false});
  const LocalReplayOutput played(replay, clock);
  Nanoseconds last_backward = {};
  const ComputeStream stream = busiest(plan, replay.classes(), played->spans, last_backward);
  own_ = {.time = {played->makespan},
          .compute = {stream.compute},
          .communication = {stream.communication},
          .tail = {played->makespan - to_seconds(last_backward).value}};
  is_steady_ = has_steady_period(plan);
  if (is_steady_) {  // updates are among the backwards, and what one stage waits for the others is not
    own_.time = {steady_period(plan, cluster, {.granularity = Granularity::Stage, .one_class_per_role = true})};
    own_.tail = {};
    add_memory(plan, cluster, own_);
    return;
  }
  // A single stage waits for no other stage; all its waiting is for data-parallel communication.
  if (plan.roles.size() == 1) own_.tail.value = played->makespan - stream.total();
  add_memory(plan, cluster, own_);
  if (longer || schedule_entry(*strategy_.pipeline.schedule).splits)
    stages_ = steady_durations(plan, cluster, replay.classes(), played->spans);
}

Estimate ReplayedPlan::estimate(int microbatches) const {
  Estimate estimate = own_;
  const int all = std::max(microbatches, microbatches_);
  if (all > microbatches_) {
    FS_ASSERT(is_steady_ || !stages_.empty());
    const double times = static_cast<double>(all) / microbatches_;
    estimate.compute.value *= times, estimate.communication.value *= times;
    if (is_steady_) estimate.time.value *= times;
  }
  if (all > microbatches_ && !is_steady_) {
    estimate.time.value += makespan_by_lists(strategy_, all, stages_) - makespan_by_lists(strategy_, microbatches_, stages_);
  }
  if (schedule_entry(*strategy_.pipeline.schedule).splits)
    estimate.next_iteration_gain = {skew_by_lists(strategy_, all, stages_)};
  estimate.bound_by = bound(estimate);
  return estimate;
}

Estimate refine(const Lowered& lowered, const Cluster& cluster, int microbatches) {
  return ReplayedPlan(lowered, cluster, microbatches > lowered.plan.microbatches).estimate(microbatches);
}

}  // namespace foreshard
