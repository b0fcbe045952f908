#include "strategy/estimate_steps.h"

#include <algorithm>
#include <set>
#include <utility>

namespace foreshard {

namespace {

// The segments of a role, each once.
std::vector<SegmentId> issued(const Role& role) {
  std::set<std::int32_t> all;
  for (const Action& action : role.actions) all.insert(action.segment.value);
  std::vector<SegmentId> segments;
  for (const std::int32_t segment : all) segments.push_back({segment});
  return segments;
}

void stretch(std::vector<PlayedStretch>& stretches, double seconds, bool computes) {
  if (seconds <= 0) return;
  if (stretches.empty() || stretches.back().computes != computes) stretches.push_back({0, computes});
  stretches.back().seconds += seconds;
}

}  // namespace

const Cost& PlayedPlan::cost(RoleId role, SegmentId segment, std::size_t i) const {
  const CostTable* costs = &plan_.costs.front();
  for (const CostTable& table : plan_.costs)
    if (table.device_kind == plan_.roles[role.index()].device_kind) costs = &table;
  return costs->by_segment[segment.index()][i];
}

PlayedPlan::PlayedPlan(const Plan& plan, AloneTimes& alone) : plan_(plan) {
  known_.resize(plan.roles.size());
  tell_kinds(alone);
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const RoleId role{static_cast<std::int32_t>(r)};
    segments_.emplace_back(plan.segments.size());
    for (const SegmentId segment : issued(plan.roles[r])) segments_[r][segment.index()] = read(role, segment, alone);
    for (const Action& action : plan.roles[r].actions) steps_ += segments_[r][action.segment.index()].steps.size();
  }
}

// Few kinds, and asked for again and again.
int PlayedPlan::kind_of(RoleId role, const Instruction& run, AloneTimes& alone) {
  const auto same = [&](const Instruction& other) {
    if (const auto* a = std::get_if<Collective>(&run.what))
      if (const auto* b = std::get_if<Collective>(&other.what))
        return a->kind == b->kind && a->algorithm == b->algorithm && a->group == b->group && a->bytes.value > 0 &&
               b->bytes.value > 0;
    if (const auto* a = std::get_if<Exchange>(&run.what))
      if (const auto* b = std::get_if<Exchange>(&other.what)) return a->to == b->to;
    return false;
  };
  for (const auto& [other, kind] : known_[role.index()])
    if (same(*other)) return kind;
  known_[role.index()].emplace_back(&run, alone.kind(role, run));
  return known_[role.index()].back().second;
}

// All traffic of the plan: what it is, and how many streams have it.
void PlayedPlan::tell_kinds(AloneTimes& alone) {
  std::set<std::tuple<int, int, int>> used;  // kind, role, stream
  for (std::size_t r = 0; r < plan_.roles.size(); ++r)
    for (const SegmentId segment : issued(plan_.roles[r]))
      for (const Instruction& run : plan_.segments[segment.index()].instructions) {
        const auto* transfer = std::get_if<Exchange>(&run.what);
        if (transfer ? !transfer->to : !std::holds_alternative<Collective>(run.what)) continue;
        const int kind = kind_of({static_cast<std::int32_t>(r)}, run, alone);
        if (kind >= 0) used.emplace(kind, static_cast<int>(r), run.stream.value);
      }
  std::vector<int> kinds;
  for (const auto& [kind, role, stream] : used) kinds.push_back(kind);
  lonely_ = alone.undisturbed(kinds);
}

int PlayedPlan::channel(const Channel& key, int parties) {
  const auto [found, fresh] = ids_.try_emplace(key, static_cast<int>(parties_.size()));
  if (fresh) parties_.push_back(parties);
  return found->second;
}

int PlayedPlan::transfer_channel(int role, const Peer& peer, const std::string& tag, bool sends) {
  const int other = role + peer.role_shift;
  int axis = -1, shift = 0;
  if (peer.axis.valid() && peer.shift != 0) {
    const int size = plan_.axes[peer.axis.index()].size;
    axis = peer.axis.value, shift = ((sends ? peer.shift : -peer.shift) % size + size) % size;
  }
  return channel({-1, sends ? role : other, sends ? other : role, axis, shift, tag}, 2);
}

PlayedStep PlayedPlan::step_of(RoleId role, const Instruction& run, const Cost& cost, AloneTimes& alone) {
  PlayedStep step{.stream = run.stream.value};
  const double busy = to_seconds(cost.busy).value;
  if (std::holds_alternative<Compute>(run.what)) {
    step.computes = true, step.computing = busy;
    return step;
  }
  step.fixed = busy, step.share = cost.sm_share;
  if (const auto* what = std::get_if<Exchange>(&run.what)) {
    step.bytes = cost.wire_factor * static_cast<double>(what->bytes.value);
    if (what->to) {
      step.kind = kind_of(role, run, alone);
      step.send = transfer_channel(role.value, *what->to, what->tag, true);
    }
    if (what->from) step.receive = transfer_channel(role.value, *what->from, what->tag, false);
  }
  if (const auto* what = std::get_if<Collective>(&run.what)) {
    step.kind = kind_of(role, run, alone);
    step.bytes = cost.wire_factor * static_cast<double>(what->bytes.value);
    const auto parties = static_cast<int>(plan_.groups[what->group.index()].roles.size());
    if (one_of_several(*what)) step.send = channel({what->group.value, 0, 0, -1, 0, ""}, parties);
  }
  step.work = step.bytes * alone.per_byte(step.kind);
  if (step.send < 0 && step.receive < 0 && to_itself(step.kind)) {
    step.fixed += std::exchange(step.work, 0.0);
    step.kind = -1;
  }
  return step;
}

// What others on the rank wait for ends a step.
static std::vector<char> noticed_in(const std::vector<Instruction>& instructions) {
  std::vector<char> noticed(instructions.size(), false);
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (!instructions[i].records.empty()) noticed[i] = true;
    for (const std::int32_t earlier : instructions[i].after) noticed[static_cast<std::size_t>(earlier)] = true;
  }
  return noticed;
}

PlayedSegment PlayedPlan::read(RoleId role, SegmentId id, AloneTimes& alone) {
  struct Part {  // of a step: an instruction
    std::size_t step = 0;
    bool simple = false, ends = false;  // may be one of several; nothing may follow it
    double share = -1;                  // of a collective
  };
  const std::vector<Instruction>& instructions = plan_.segments[id.index()].instructions;
  const std::vector<char> noticed = noticed_in(instructions);
  PlayedSegment segment;
  std::vector<std::vector<PlayedStretch>> stretches;
  std::vector<Part> parts;
  std::vector<int> newest(plan_.roles[role.index()].streams.size(), -1);  // [stream]: instruction
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& run = instructions[i];
    PlayedStep step = step_of(role, run, cost(role, id, i), alone);
    const bool collective = std::holds_alternative<Collective>(run.what);
    Part part{
        .simple = step.computes || std::holds_alternative<Mark>(run.what) || (collective && step.kind < 0 && step.send < 0),
        .ends = noticed[i] != 0,
        .share = collective ? step.share : -1};
    const int last = std::exchange(newest[run.stream.index()], static_cast<int>(i));
    const Part before = last < 0 ? Part{} : parts[static_cast<std::size_t>(last)];
    const bool alike = part.share < 0 || before.share < 0 || part.share == before.share;
    if (before.simple && !before.ends && part.simple && alike && run.after.empty() && run.waits.empty()) {
      part.step = before.step;
      PlayedStep& whole = segment.steps[part.step];
      whole.computing += step.computing, whole.fixed += step.fixed;
      whole.computes |= step.computes, whole.share = std::max(whole.share, step.share);
    } else {
      part.step = segment.steps.size();
      for (const std::int32_t earlier : run.after)
        step.after.push_back(static_cast<std::int32_t>(parts[static_cast<std::size_t>(earlier)].step));
      segment.steps.push_back(step), stretches.emplace_back();
    }
    const auto number = static_cast<std::int32_t>(part.step);
    for (const EventUse& wait : run.waits) segment.events.push_back({wait, number});
    for (const EventUse& record : run.records) segment.events.push_back({record, number, true});
    stretch(stretches[part.step], step.computing, true), stretch(stretches[part.step], step.fixed, false);
    parts.push_back(part);
  }
  for (std::size_t n = 0; n < segment.steps.size(); ++n) {
    PlayedStep& step = segment.steps[n];
    step.first_stretch = static_cast<std::int32_t>(segment.stretches.size());
    if (step.computes && step.fixed > 0)
      segment.stretches.insert(segment.stretches.end(), stretches[n].begin(), stretches[n].end());
    step.end_stretch = static_cast<std::int32_t>(segment.stretches.size());
  }
  return segment;
}

}  // namespace foreshard
