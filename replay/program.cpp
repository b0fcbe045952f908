#include "replay/program.h"

#include <algorithm>

namespace foreshard::player {
namespace {

MeetingUse use_of(SegmentLayout& layout, int key) {
  const auto at = std::find(layout.keys.begin(), layout.keys.end(), key) - layout.keys.begin();
  if (at == static_cast<std::ptrdiff_t>(layout.keys.size())) {
    layout.keys.push_back(key);
    layout.counts.push_back(0);
  }
  return {key, static_cast<std::int32_t>(at), layout.counts[static_cast<std::size_t>(at)]++};
}

SegmentLayout lay_out(const Segment& segment, const std::vector<InstructionUse>& uses, const Patterns& patterns) {
  SegmentLayout layout;
  layout.first_wait.push_back(0);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    layout.first_wait.push_back(layout.first_wait.back() + static_cast<std::int32_t>(segment.instructions[i].waits.size()));
    layout.meeting.emplace_back();
    layout.from.emplace_back();
    if (uses[i].send >= 0) layout.meeting.back() = use_of(layout, send_key(uses[i].send));
    if (uses[i].group >= 0) layout.meeting.back() = use_of(layout, group_key(patterns, uses[i].group));
    if (uses[i].receive >= 0) layout.from.back() = use_of(layout, receive_key(uses[i].receive));
  }
  return layout;
}

// The records that are newest so far, per (event, slot).
class Newest {
 public:
  explicit Newest(const Role& role) {
    first_.push_back(0);
    for (const Event& event : role.events) first_.push_back(first_.back() + static_cast<std::size_t>(event.slots));
    at_.resize(first_.back());
  }
  Position& of(const EventUse& use, const Action& action) {
    const std::int32_t slot = std::holds_alternative<ParamId>(use.slot.which)
                                  ? action.args[std::get<ParamId>(use.slot.which).index()]
                                  : std::get<std::int32_t>(use.slot.which);
    return at_[first_[use.event.index()] + static_cast<std::size_t>(slot)];
  }

 private:
  std::vector<std::size_t> first_ = {};
  std::vector<Position> at_ = {};
};

// The instructions of a segment that touch events.
std::vector<std::vector<std::int32_t>> event_users(const Plan& plan, const std::vector<SegmentId>& segments) {
  std::vector<std::vector<std::int32_t>> users(plan.segments.size());
  for (const SegmentId s : segments) {
    const std::vector<Instruction>& instructions = plan.segments[s.index()].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i)
      if (!instructions[i].waits.empty() || !instructions[i].records.empty())
        users[s.index()].push_back(static_cast<std::int32_t>(i));
  }
  return users;
}

}  // namespace

std::vector<SegmentLayout> lay_out(const Plan& plan, const Patterns& patterns) {
  std::vector<SegmentLayout> layouts;
  layouts.reserve(plan.segments.size());
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    layouts.push_back(lay_out(plan.segments[s], patterns.uses[s], patterns));
  return layouts;
}

RoleProgram make_program(const Plan& plan, const Patterns& patterns, const std::vector<SegmentLayout>& layouts, RoleId role_id,
                         int runs) {
  const Role& role = plan.roles[role_id.index()];
  const auto users = event_users(plan, patterns.segments[role_id.index()]);
  Newest newest(role);
  std::vector<std::int32_t> used(static_cast<std::size_t>(key_count(plan, patterns)), 0);
  RoleProgram program;
  program.times_issued.resize(plan.segments.size());
  const std::size_t issues = role.actions.size() * static_cast<std::size_t>(runs);
  program.issues.reserve(issues);
  for (std::size_t a = 0; a < issues; ++a) {
    const Action& action = role.actions[a % role.actions.size()];
    const std::size_t s = action.segment.index();
    program.issues.push_back(
        {action.segment, static_cast<std::int32_t>(program.bindings.size()), static_cast<std::int32_t>(program.bases.size())});
    ++program.times_issued[s];
    for (const std::int32_t i : users[s]) {
      const Instruction& instruction = plan.segments[s].instructions[static_cast<std::size_t>(i)];
      for (const EventUse& wait : instruction.waits) program.bindings.push_back(newest.of(wait, action));
      for (const EventUse& record : instruction.records)
        newest.of(record, action) = {static_cast<std::int32_t>(a), i, instruction.stream.value};
    }
    for (std::size_t k = 0; k < layouts[s].keys.size(); ++k) {
      std::int32_t& uses = used[static_cast<std::size_t>(layouts[s].keys[k])];
      program.bases.push_back(uses);
      uses += layouts[s].counts[k];
    }
  }
  return program;
}

}  // namespace foreshard::player
