#include "core/plan/equal_roles.h"

#include <algorithm>
#include <map>
#include <utility>

namespace foreshard {

namespace {

bool same_order(const Segment& a, const Segment& b) {
  const auto same = [](const Instruction& x, const Instruction& y) {
    return x.stream == y.stream && x.after == y.after && x.waits == y.waits && x.records == y.records && x.reads == y.reads &&
           x.writes == y.writes && x.acquires == y.acquires && x.releases == y.releases;
  };
  return a.params == b.params && std::ranges::equal(a.instructions, b.instructions, same);
}

// [parameter]: whether a slot of an event or of a buffer has this number.
std::vector<char> numbering_params(const Segment& segment) {
  std::vector<char> numbers(segment.params.size(), 0);
  const auto note = [&](const auto& uses) {
    for (const auto& use : uses)
      if (const auto* param = std::get_if<ParamId>(&use.slot.which)) numbers[param->index()] = 1;
  };
  for (const Instruction& run : segment.instructions)
    note(run.waits), note(run.records), note(run.reads), note(run.writes), note(run.acquires), note(run.releases);
  return numbers;
}

class RoleMemories {
 public:
  explicit RoleMemories(const Plan& plan) : plan_(plan), numbering_(plan.segments.size()) {}

  bool same(const Role& a, const Role& b) {
    const auto alike = [](const Buffer& x, const Buffer& y) {
      return x.bytes == y.bytes && x.space == y.space && x.scope == y.scope && x.resident == y.resident &&
             x.offsets == y.offsets;
    };
    return a.actions.size() == b.actions.size() && std::ranges::equal(a.buffers, b.buffers, alike) && a.streams == b.streams &&
           a.events == b.events && a.ahead == b.ahead &&
           std::ranges::equal(a.actions, b.actions, [&](const Action& x, const Action& y) { return same(x, y); });
  }

 private:
  bool same(const Action& a, const Action& b) {
    if (a.args.size() != b.args.size() || !same(a.segment, b.segment)) return false;
    std::vector<char>& numbers = numbering_[a.segment.index()];
    if (numbers.empty()) numbers = numbering_params(plan_.segments[a.segment.index()]);
    for (std::size_t p = 0; p < a.args.size(); ++p)
      if (numbers[p] && a.args[p] != b.args[p]) return false;
    return true;
  }
  bool same(SegmentId a, SegmentId b) {
    if (a == b) return true;
    const auto [known, fresh] = same_segments_.try_emplace({a.value, b.value}, false);
    if (fresh) known->second = same_order(plan_.segments[a.index()], plan_.segments[b.index()]);
    return known->second;
  }

  const Plan& plan_;
  std::vector<std::vector<char>> numbering_;  // [segment]: numbering_params, once it is asked for
  std::map<std::pair<std::int32_t, std::int32_t>, bool> same_segments_ = {};
};

}  // namespace

std::vector<std::size_t> first_equal_roles(const Plan& plan) {
  RoleMemories memories(plan);
  std::vector<std::size_t> first;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    std::size_t other = 0;
    while (other < r && !(first[other] == other && memories.same(plan.roles[other], plan.roles[r]))) ++other;
    first.push_back(other);
  }
  return first;
}

void copy_memory(Plan& plan, std::size_t from, std::size_t to) {
  const Role& source = plan.roles[from];
  Role& role = plan.roles[to];
  for (std::size_t a = 0; a < role.actions.size(); ++a) {
    const std::vector<Param>& params = plan.segments[role.actions[a].segment.index()].params;
    for (std::size_t p = 0; p < params.size(); ++p)
      if (params[p].kind == ParamKind::Slot) role.actions[a].args[p] = source.actions[a].args[p];
  }
  for (std::size_t b = 0; b < role.buffers.size(); ++b) role.buffers[b].offsets = source.buffers[b].offsets;
}

}  // namespace foreshard
