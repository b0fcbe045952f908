#include "strategy/memory/slot_numbers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/at.h"

namespace foreshard {

namespace {

using FixedSlot = std::pair<std::int32_t, std::int32_t>;  // buffer, fixed slot

// The only parameter of this name; none: there is none, or there are two, as in a segment of two micro-batches.
std::optional<ParamId> param_named(const Segment& segment, const std::string& name) {
  std::optional<ParamId> found;
  for (std::size_t p = 0; p < segment.params.size(); ++p) {
    if (segment.params[p].name != name) continue;
    if (found) return {};
    found = ParamId{static_cast<std::int32_t>(p)};
  }
  return found;
}

const std::string kPooled = "pooled";  // numbers the micro-batches in flight of all chunks (ChunkArgs)

// What numbers a part of a micro-batch's time in flight, and what numbers all of it.
const std::map<std::string, std::string> kWhole = {
    {"early", "activation"}, {"deferred", "activation"}, {"pooled_early", kPooled}, {"pooled_deferred", kPooled}};

class SharingRoles {
 public:
  SharingRoles(Plan& plan, const std::vector<std::size_t>& roles) : plan_(plan), roles_(roles) {
    std::set<std::size_t> seen;
    for (const std::size_t r : roles)
      for (const Action& action : plan.roles[r].actions)
        if (seen.insert(action.segment.index()).second) segments_.push_back(&plan.segments[action.segment.index()]);
  }

  bool number_scratch() {
    if (std::ranges::all_of(roles_, [&](std::size_t r) { return slots_by(kPooled, r) < 2; })) return false;
    std::map<FixedSlot, BufferId> buffers;
    const auto fixed_beside_number = [](const Segment& segment, const Slot& slot) {
      return std::holds_alternative<std::int32_t>(slot.which) && param_named(segment, kPooled).has_value();
    };
    for (const std::int32_t buffer : inside_segments(fixed_beside_number)) {
      const std::size_t slots = first().buffers[static_cast<std::size_t>(buffer)].offsets.size();
      for (std::size_t slot = 0; slot < slots; ++slot)
        buffers[{buffer, static_cast<std::int32_t>(slot)}] = slot == 0 ? BufferId{buffer} : copied(buffer, slot);
    }
    for (const auto& [place, buffer] : buffers) resize(buffer, kPooled);
    rewrite([&](const Segment& segment, BufferId& buffer, Slot& slot) {
      const auto* fixed = std::get_if<std::int32_t>(&slot.which);
      if (fixed == nullptr) return;
      const auto found = buffers.find({buffer.value, *fixed});
      if (found == buffers.end()) return;
      buffer = found->second;
      slot.which = *param_named(segment, kPooled);
    });
    return !buffers.empty();
  }

  bool number_kept() {
    std::map<std::int32_t, std::string> names;  // buffer -> the parameter that will number it; empty: it stays
    for (const Segment* segment : segments_)
      for (const Instruction& run : segment->instructions)
        for (const auto* blocks : {&run.acquires, &run.releases})
          for (const Block& block : *blocks) {
            const std::string name = whole_name(*segment, block.slot);
            const auto [known, fresh] = names.try_emplace(block.buffer.value, name);
            if (known->second != name) known->second.clear();
          }
    std::erase_if(names, [](const auto& entry) { return entry.second.empty(); });
    for (const auto& [buffer, name] : names) resize({buffer}, name);
    rewrite([&](const Segment& segment, const BufferId& buffer, Slot& slot) {
      if (const auto found = names.find(buffer.value); found != names.end()) slot.which = *param_named(segment, found->second);
    });
    return !names.empty();
  }

  bool split_scratch() {
    std::map<std::pair<std::int32_t, int>, BufferId> copies;  // buffer, number of the lifetime in its segment
    const std::set<std::int32_t> scratch = inside_segments([](const Segment&, const Slot&) { return true; });
    for (Segment* segment : segments_) {
      std::map<std::pair<std::int32_t, decltype(Slot::which)>, int> lives;  // so far
      const auto change = [&](const Segment&, BufferId& buffer, const Slot& slot) {
        const auto life = lives.find({buffer.value, slot.which});
        if (life == lives.end() || life->second == 1) return;
        const auto [copy, fresh] = copies.try_emplace({buffer.value, life->second});
        if (fresh) copy->second = copied(buffer.value, at(life->second - 1));
        buffer = copy->second;
      };
      for (Instruction& run : segment->instructions) {
        for (const Block& block : run.acquires)
          if (scratch.contains(block.buffer.value)) ++lives[{block.buffer.value, block.slot.which}];
        change_blocks(*segment, run, change);
      }
    }
    return !copies.empty();
  }

 private:
  const Role& first() const { return plan_.roles[roles_.front()]; }

  // How many slots this parameter tells apart in a role.
  int slots_by(const std::string& name, std::size_t r) const {
    int most = 0;
    for (const Action& action : plan_.roles[r].actions)
      if (const auto param = param_named(plan_.segments[action.segment.index()], name))
        most = std::max(most, action.args[param->index()] + 1);
    return most;
  }
  void resize(BufferId buffer, const std::string& name) {
    for (const std::size_t r : roles_)
      plan_.roles[r].buffers[buffer.index()].offsets.assign(static_cast<std::size_t>(std::max(1, slots_by(name, r))), Bytes{});
  }

  static std::string whole_name(const Segment& segment, const Slot& slot) {
    const auto* param = std::get_if<ParamId>(&slot.which);
    if (param == nullptr) return "";
    const auto found = kWhole.find(segment.params[param->index()].name);
    if (found == kWhole.end() || param_named(segment, found->first) != *param || !param_named(segment, found->second))
      return "";
    return found->second;
  }

  // Those on the device that every segment that touches them acquires and releases, on the compute stream, all in slots that `may` have.
  template <class May>
  std::set<std::int32_t> inside_segments(May may) const {
    std::set<std::int32_t> touched, others;
    for (const Segment* segment : segments_) {
      std::map<std::int32_t, int> open;
      const auto note = [&](const Block& block, const Instruction& run, int change) {
        const Buffer& buffer = first().buffers[block.buffer.index()];
        const bool compute = first().streams[run.stream.index()].kind == StreamKind::Compute;
        touched.insert(block.buffer.value);
        if (!may(*segment, block.slot) || !compute || buffer.resident || buffer.space != Space::Device ||
            buffer.scope != Scope::Rank)
          others.insert(block.buffer.value);
        if ((open[block.buffer.value] += change) < 0) others.insert(block.buffer.value);
      };
      for (const Instruction& run : segment->instructions) {
        for (const Block& block : run.acquires) note(block, run, 1);
        for (const Block& block : run.releases) note(block, run, -1);
      }
      for (const auto& [buffer, count] : open)
        if (count != 0) others.insert(buffer);
    }
    std::set<std::int32_t> scratch;
    std::ranges::set_difference(touched, others, std::inserter(scratch, scratch.end()));
    return scratch;
  }

  // A buffer of its own for another fixed slot, or another lifetime.
  BufferId copied(std::int32_t buffer, std::size_t slot) {
    const BufferId copy{static_cast<std::int32_t>(first().buffers.size())};
    for (const std::size_t r : roles_) {
      Buffer other = plan_.roles[r].buffers[static_cast<std::size_t>(buffer)];
      other.name += ", " + std::to_string(slot);
      plan_.roles[r].buffers.push_back(std::move(other));
    }
    return copy;
  }

  template <class Change>
  void rewrite(Change change) {
    for (Segment* segment : segments_)
      for (Instruction& run : segment->instructions) change_blocks(*segment, run, change);
  }
  template <class Change>
  static void change_blocks(const Segment& segment, Instruction& run, Change change) {
    for (auto* uses : {&run.reads, &run.writes})
      for (Use& use : *uses) change(segment, use.buffer, use.slot);
    for (auto* blocks : {&run.acquires, &run.releases})
      for (Block& block : *blocks) change(segment, block.buffer, block.slot);
  }

  Plan& plan_;
  const std::vector<std::size_t>& roles_;
  std::vector<Segment*> segments_ = {};
};

template <class Number>
bool in_roles(Plan& plan, Number number) {
  bool any = false;
  for (const std::vector<std::size_t>& roles : sharing_roles(plan)) {
    const std::size_t count = plan.roles[roles.front()].buffers.size();
    if (std::ranges::all_of(roles, [&](std::size_t r) { return plan.roles[r].buffers.size() == count; }))
      any = number(SharingRoles(plan, roles)) || any;
  }
  return any;
}

}  // namespace

std::vector<std::vector<std::size_t>> sharing_roles(const Plan& plan) {
  std::vector<int> of_segment(plan.segments.size(), -1);
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    int group = -1;
    for (const Action& action : plan.roles[r].actions) group = std::max(group, of_segment[action.segment.index()]);
    if (group < 0) group = static_cast<int>(groups.size()), groups.emplace_back();
    groups[static_cast<std::size_t>(group)].push_back(r);
    for (const Action& action : plan.roles[r].actions) {
      int& known = of_segment[action.segment.index()];
      if (known >= 0 && known != group) return {};  // some segments are shared, not all
      known = group;
    }
  }
  return groups;
}

static std::set<std::size_t> segments_run(const Plan& plan, const std::vector<std::size_t>& roles) {
  std::vector<char> runs(plan.segments.size(), 0);
  for (const std::size_t r : roles)
    for (const Action& action : plan.roles[r].actions) runs[action.segment.index()] = 1;
  std::set<std::size_t> segments;
  for (std::size_t s = 0; s < runs.size(); ++s)
    if (runs[s]) segments.insert(segments.end(), s);
  return segments;
}

Plan roles_alone(const Plan& plan, const std::vector<std::size_t>& roles) {
  Plan alone{.axes = plan.axes, .groups = plan.groups, .segments = std::vector<Segment>(plan.segments.size())};
  for (const std::size_t s : segments_run(plan, roles)) alone.segments[s] = plan.segments[s];
  for (const std::size_t r : roles) alone.roles.push_back(plan.roles[r]);
  return alone;
}

void put_back(Plan alone, const std::vector<std::size_t>& roles, Plan& plan) {
  for (const std::size_t s : segments_run(plan, roles)) plan.segments[s] = std::move(alone.segments[s]);
  for (std::size_t i = 0; i < roles.size(); ++i) plan.roles[roles[i]] = std::move(alone.roles[i]);
}

bool number_scratch(Plan& plan) {
  return in_roles(plan, [](SharingRoles roles) { return roles.number_scratch(); });
}
bool number_kept(Plan& plan) {
  return in_roles(plan, [](SharingRoles roles) { return roles.number_kept(); });
}

bool split_scratch(Plan& plan) {
  return in_roles(plan, [](SharingRoles roles) { return roles.split_scratch(); });
}

}  // namespace foreshard
