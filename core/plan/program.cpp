#include "core/plan/program.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace foreshard {
namespace {

class PointFinder {
 public:
  explicit PointFinder(const Plan& plan) : plan_(plan) {}

  MeetingPoints find() {
    found_.segments.reserve(plan_.segments.size());
    for (const Segment& segment : plan_.segments) add(segment);
    return std::move(found_);
  }

 private:
  void add(const Segment& segment) {
    SegmentMeetings& uses = found_.segments.emplace_back();
    uses.first_wait.push_back(0);
    uses.meeting.resize(segment.instructions.size());
    uses.from.resize(segment.instructions.size());
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      const Instruction& instruction = segment.instructions[i];
      uses.first_wait.push_back(uses.first_wait.back() + static_cast<std::int32_t>(instruction.waits.size()));
      if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
        if (exchange->to) uses.meeting[i] = use_of(uses, side(MeetingPoint::Kind::Send, *exchange->to, exchange->tag));
        if (exchange->from) uses.from[i] = use_of(uses, side(MeetingPoint::Kind::Receive, *exchange->from, exchange->tag));
      } else if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
        uses.meeting[i] = use_of(uses, point({.kind = MeetingPoint::Kind::Collective, .group = collective->group}));
      }
    }
  }

  int side(MeetingPoint::Kind kind, const Peer& peer, const std::string& tag) {
    const std::int32_t number = tags_.try_emplace(tag, static_cast<std::int32_t>(tags_.size())).first->second;
    return point({.kind = kind, .peer = reduced(plan_, peer), .tag = number});
  }

  int point(const MeetingPoint& p) {
    const auto key = std::tuple(p.kind, p.peer.role_shift, p.peer.axes, p.peer.shift, p.tag, p.group.value);
    const auto [at, fresh] = point_of_.try_emplace(key, static_cast<int>(found_.points.size()));
    if (fresh) found_.points.push_back(p);
    return at->second;
  }

  static MeetingUse use_of(SegmentMeetings& uses, int point) {
    const auto at = std::find(uses.points.begin(), uses.points.end(), point) - uses.points.begin();
    if (at == static_cast<std::ptrdiff_t>(uses.points.size())) {
      uses.points.push_back(point);
      uses.counts.push_back(0);
    }
    return {point, static_cast<std::int32_t>(at), uses.counts[static_cast<std::size_t>(at)]++};
  }

  const Plan& plan_;
  MeetingPoints found_ = {};
  std::unordered_map<std::string, std::int32_t> tags_ = {};
  std::map<std::tuple<MeetingPoint::Kind, std::int32_t, std::vector<AxisId>, std::int32_t, std::int32_t, std::int32_t>, int>
      point_of_ = {};
};

// The newest record so far, per (event, slot).
class NewestRecords {
 public:
  explicit NewestRecords(const Role& role) {
    for (const Event& event : role.events) {
      first_.push_back(at_.size());
      at_.resize(at_.size() + static_cast<std::size_t>(event.slots));
    }
  }
  Position& of(const EventUse& use, const Action& action) {
    return at_[first_[use.event.index()] + static_cast<std::size_t>(value_of(use.slot, action))];
  }

 private:
  std::vector<std::size_t> first_ = {};
  std::vector<Position> at_ = {};
};

// The instructions of a segment that touch events, for the segments that the role issues.
std::vector<std::vector<std::int32_t>> event_users(const Plan& plan, const std::vector<std::int32_t>& times_issued) {
  std::vector<std::vector<std::int32_t>> users(plan.segments.size());
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    if (times_issued[s] == 0) continue;
    const std::vector<Instruction>& instructions = plan.segments[s].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i)
      if (!instructions[i].waits.empty() || !instructions[i].records.empty()) users[s].push_back(static_cast<std::int32_t>(i));
  }
  return users;
}

}  // namespace

Peer reduced(const Plan& plan, Peer peer) {
  std::int32_t size = 1;
  for (const AxisId axis : peer.axes) size *= plan.axes[axis.index()].size;
  peer.shift = ((peer.shift % size) + size) % size;
  if (peer.shift == 0) peer.axes.clear();
  return peer;
}

MeetingPoints find_meeting_points(const Plan& plan) { return PointFinder(plan).find(); }

IssueOrder issue_order(const Role& role) {
  IssueOrder order{.ahead = static_cast<std::int32_t>(role.ahead.size())};
  const auto actions = static_cast<std::int32_t>(role.actions.size());
  order.pass.reserve(role.actions.size());
  std::int32_t next = 0;
  for (std::int32_t a = order.ahead; a < actions; ++a) {
    order.pass.push_back({a});
    while (next < order.ahead && role.ahead[static_cast<std::size_t>(next)] == a) order.pass.push_back({next++, true});
  }
  order.place.resize(role.actions.size());
  for (std::size_t p = 0; p < order.pass.size(); ++p)
    order.place[static_cast<std::size_t>(order.pass[p].action)] = static_cast<std::int32_t>(p);
  return order;
}

// Binds the waits of a pass in the middle of many: after a whole pass before it.
static void bind_waits(const Plan& plan, const Role& role, RoleProgram& program) {
  const auto users = event_users(plan, program.times_issued);
  NewestRecords newest(role);  // `runs_back`: the run
  for (const bool binds : {false, true})
    for (const IssueOrder::Issued& issued : program.order.pass) {
      const Action& action = role.actions[static_cast<std::size_t>(issued.action)];
      const std::int32_t run = (binds ? 1 : 0) + (issued.ahead ? 1 : 0);
      auto next = program.bindings.begin() + program.issues[static_cast<std::size_t>(issued.action)].first_binding;
      for (const std::int32_t i : users[action.segment.index()]) {
        const Instruction& instruction = plan.segments[action.segment.index()].instructions[static_cast<std::size_t>(i)];
        for (const EventUse& use : instruction.waits) {
          Position record = newest.of(use, action);
          if (record.action >= 0) record.runs_back = run - record.runs_back;
          if (binds) *next++ = record;
        }
        for (const EventUse& record : instruction.records)
          newest.of(record, action) = {issued.action, i, instruction.stream.value, run};
      }
    }
}

RoleProgram read_role(const Plan& plan, const MeetingPoints& meetings, RoleId role_id) {
  const Role& role = plan.roles[role_id.index()];
  RoleProgram program{.order = issue_order(role)};
  program.times_issued.resize(plan.segments.size());
  for (const Action& action : role.actions) ++program.times_issued[action.segment.index()];
  program.uses_per_run.resize(meetings.points.size());
  program.issues.reserve(role.actions.size());
  std::int32_t binding = 0;
  for (const Action& action : role.actions) {
    const SegmentMeetings& segment = meetings.segments[action.segment.index()];
    program.issues.push_back({action.segment, binding, static_cast<std::int32_t>(program.bases.size())});
    binding += segment.first_wait.back();
    for (std::size_t p = 0; p < segment.points.size(); ++p) {
      std::int32_t& uses = program.uses_per_run[static_cast<std::size_t>(segment.points[p])];
      program.bases.push_back(uses);
      uses += segment.counts[p];
    }
  }
  program.bindings.resize(static_cast<std::size_t>(binding));
  bind_waits(plan, role, program);
  return program;
}

}  // namespace foreshard
