// Isolated durations of a plan's actions, and the schedule's recurrence over them.
#include <algorithm>
#include <map>

#include "core/memory_timeline.h"
#include "strategy/estimate.h"
#include "strategy/estimate_alone.h"
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

// Plays actions of one rank: its streams, its events, nobody else. What a peer would delay is in the recurrence. `in_turn`:
// collectives beside the computes take the links in issue order, as with ZeRO 3 and one place for gathered parameters.
//
// Collectives of several roles begin when the last of them is there: `known` says when, as far as an earlier pass has found out,
// and what this one finds goes to `found`.
using Meetings = std::map<std::pair<std::int32_t, int>, double>;  // {group, how manieth use}

class Solo {
 public:
  Solo(const Plan& plan, AloneTimes& alone, RoleId role, bool in_turn, const Meetings* known = nullptr,
       Meetings* found = nullptr)
      : plan_(plan),
        alone_(alone),
        role_(role),
        in_turn_(in_turn),
        known_(known),
        found_(found),
        streams_(plan.roles[role.index()].streams.size(), 0.0) {}

  // The compute stream stands still until then.
  void wait_until(double when) { streams_[0] = std::max(streams_[0], when); }

  void play(const Action& action) {
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
    }
  }

  double compute_end() const { return streams_[0]; }
  double end() const { return *std::max_element(streams_.begin(), streams_.end()); }
  double communication() const { return communication_; }
  double beside() const { return beside_; }  // seconds of collectives on other streams

  // Of the send of a segment, if it has one.
  double send(SegmentId id) {
    const Segment& segment = plan_.segments[id.index()];
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      const auto* what = std::get_if<Exchange>(&segment.instructions[i].what);
      if (what && what->to && what->to->role_shift != 0) return durations(id)[i];
    }
    return 0;
  }

 private:
  struct Transfer {  // beside the computes: takes a share of the compute units
    double begin = 0, end = 0, share = 0;
  };

  const Cost& cost(SegmentId segment, std::size_t i) const { return plan_.costs.front().by_segment[segment.index()][i]; }

  double meet(const Instruction& run, double begin) {
    const auto* what = std::get_if<Collective>(&run.what);
    if (!found_ || !what || plan_.groups[what->group.index()].roles.size() < 2) return begin;
    const std::pair<std::int32_t, int> key{what->group.value, uses_[what->group.value]++};
    double& last = (*found_)[key];
    last = std::max(last, begin);
    const auto entry = known_->find(key);
    return entry == known_->end() ? begin : std::max(begin, entry->second);
  }

  // A receive does not hold its rank up here, but its kernel takes compute units as long as the send.
  double end_of(const Instruction& run, double begin, double seconds, const Cost& cost) {
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
  double slowed(double when, double work) {
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

  static std::int32_t slot(const Slot& slot, const Action& action) {
    if (const auto* fixed = std::get_if<std::int32_t>(&slot.which)) return *fixed;
    return action.args[std::get<ParamId>(slot.which).index()];
  }
  const std::vector<double>& durations(SegmentId id) {
    auto [entry, fresh] = seconds_.try_emplace(id.value);
    if (!fresh) return entry->second;
    const Segment& segment = plan_.segments[id.index()];
    const std::vector<Cost>& costs = plan_.costs.front().by_segment[id.index()];
    for (std::size_t i = 0; i < segment.instructions.size(); ++i)
      entry->second.push_back(alone_.duration(role_, segment.instructions[i], costs[i]));
    return entry->second;
  }

  const Plan& plan_;
  AloneTimes& alone_;
  RoleId role_;
  bool in_turn_;
  const Meetings* known_;
  Meetings* found_;
  std::map<std::int32_t, int> uses_ = {};  // of groups of several roles
  std::vector<double> streams_;
  std::vector<double> ends_ = {};
  std::map<std::pair<std::int32_t, std::int32_t>, double> events_ = {};
  std::map<std::int32_t, std::vector<double>> seconds_ = {};
  std::vector<Transfer> transfers_ = {};
  double communication_ = 0, beside_ = 0, last_collective_ = 0;
};

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

}  // namespace

std::vector<StageDurations> stage_durations(const Plan& plan, const Cluster& cluster) {
  AloneTimes alone(plan, cluster);
  return measure(plan, alone, false);
}

Estimate refine(const Lowered& lowered, const Cluster& cluster) {
  const Plan& plan = lowered.plan;
  const Strategy& s = lowered.strategy;
  AloneTimes alone(plan, cluster);
  const bool in_turn = s.zero == 3 && !s.overlap.parameters;
  const std::vector<StageDurations> stages = measure(plan, alone, in_turn);
  const ScheduleLists lists =
      schedule_entry(*s.schedule).lists({.p = s.pp, .m = plan.microbatches, .v = s.virtual_stages, .g = s.microbatch_group});
  const auto timing = evaluate(lists, schedule_times(stages, s.overlap.p2p));
  if (!timing) throw Error("schedule " + schedule_entry(*s.schedule).name + " deadlocks");
  Estimate estimate;
  const double end = finish_all(plan, alone, lists, *timing);
  for (int role = 0; role < s.pp; ++role) {
    const auto at = static_cast<std::size_t>(role);
    double compute = 0, talk = 0;
    for (std::size_t stage = at; stage < stages.size(); stage += static_cast<std::size_t>(s.pp)) {
      compute += (stages[stage].forward + stages[stage].backward - stages[stage].communication) * plan.microbatches;
      talk += stages[stage].communication * plan.microbatches;
    }
    if (compute + talk > estimate.compute.value + estimate.communication.value)
      estimate.compute = {compute}, estimate.communication = {talk};
  }
  estimate.time = {end};
  estimate.tail = {end - timing->makespan};
  estimate.bound_by = bound(estimate);
  add_memory(plan, cluster, estimate);
  return estimate;
}

}  // namespace foreshard
