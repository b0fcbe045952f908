#include "replay/patterns.h"

#include <algorithm>
#include <optional>

#include "core/plan/program.h"

namespace foreshard::player {
namespace {

template <class T>
int intern(std::vector<T>& known, const T& value) {
  const auto at = std::find(known.begin(), known.end(), value);
  if (at != known.end()) return static_cast<int>(at - known.begin());
  known.push_back(value);
  return static_cast<int>(known.size()) - 1;
}

bool one_pass_of_a_ring(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather;
}

// Ring all-reduce is a reduce-scatter and an all-gather over the same edges.
bool same_links(const Collective& a, const Collective& b) {
  return a.group == b.group && a.algorithm == Algorithm::Ring && b.algorithm == Algorithm::Ring && one_pass_of_a_ring(a.kind) &&
         one_pass_of_a_ring(b.kind);
}

std::optional<CopyPattern> copy_between(Space from, Space to) {
  const bool from_device = from == Space::Device, to_device = to == Space::Device;
  const bool nvme = from == Space::Nvme || to == Space::Nvme;
  if (from_device && to_device) return std::nullopt;
  if (from_device || to_device) return CopyPattern{nvme ? Endpoint::Nvme : Endpoint::HostMemory, to_device, false};
  if (!nvme) return std::nullopt;
  return CopyPattern{Endpoint::Nvme, from == Space::Nvme, true};
}

std::optional<CopyPattern> copy_of(const Role& role, const Instruction& instruction) {
  const auto space = [&](const Use& use) { return role.buffers[use.buffer.index()].space; };
  return copy_between(space(instruction.reads[0]), space(instruction.writes[0]));
}

class PatternFinder {
 public:
  explicit PatternFinder(const Plan& plan) : plan_(plan) {}

  Patterns find() {
    found_.uses.resize(plan_.segments.size());
    found_.segments.resize(plan_.roles.size());
    for (std::size_t r = 0; r < plan_.roles.size(); ++r) {
      std::vector<bool> issued(plan_.segments.size());
      for (const Action& action : plan_.roles[r].actions) issued[action.segment.index()] = true;
      for (std::size_t s = 0; s < issued.size(); ++s)
        if (issued[s]) found_.segments[r].push_back({static_cast<std::int32_t>(s)});
    }
    for (std::size_t r = 0; r < plan_.roles.size(); ++r)
      for (const SegmentId s : found_.segments[r]) look_at(plan_.roles[r], s);
    relate_collectives();
    for (std::size_t r = 0; r < plan_.roles.size(); ++r) found_.slots.push_back(slots(plan_.roles[r], found_.segments[r]));
    return std::move(found_);
  }

 private:
  void look_at(const Role& role, SegmentId s) {
    const Segment& segment = plan_.segments[s.index()];
    std::vector<InstructionUse>& uses = found_.uses[s.index()];
    const bool known = !uses.empty();
    if (!known) uses.reserve(segment.instructions.size());
    for (const Instruction& instruction : segment.instructions) {
      if (!known) uses.push_back(use_of(instruction));
      if (std::holds_alternative<Copy>(instruction.what))
        if (const auto copy = copy_of(role, instruction)) intern(found_.copies, *copy);
    }
  }

  InstructionUse use_of(const Instruction& instruction) {
    InstructionUse use;
    if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
      const auto peer = [&](const Peer& p) { return intern(found_.peers, reduced(plan_, p)); };
      if (exchange->to) use.to = peer(*exchange->to);
      if (exchange->from) use.from = peer(*exchange->from);
    } else if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
      Collective form = *collective;
      form.bytes = {};
      form.dtype = {}, form.combine = {}, form.accumulate = {},
      form.slice = {};  // none of these changes which links the bytes cross
      use.collective = intern(found_.collectives, form);
    } else {
      use.copy = std::holds_alternative<Copy>(instruction.what);
    }
    return use;
  }

  void relate_collectives() {
    for (const Collective& form : found_.collectives) {
      std::size_t like = 0;
      while (!(found_.collectives[like] == form) && !same_links(found_.collectives[like], form)) ++like;
      const auto passes = [](const Collective& c) { return c.kind == CollectiveKind::AllReduce ? 2.0 : 1.0; };
      const bool same = found_.collectives[like] == form;
      found_.links_like.push_back(static_cast<int>(like));
      found_.volume.push_back(same ? 1.0 : passes(form) / passes(found_.collectives[like]));
    }
  }

  std::vector<int> slots(const Role& role, const std::vector<SegmentId>& segments) const {
    std::vector<bool> used(static_cast<std::size_t>(found_.slot_count()));
    const auto mark = [&](int slot) { used[static_cast<std::size_t>(slot)] = true; };
    for (const SegmentId s : segments) {
      const std::vector<InstructionUse>& uses = found_.uses[s.index()];
      for (std::size_t i = 0; i < uses.size(); ++i) {
        if (uses[i].to >= 0) mark(found_.to_slot(uses[i].to));
        if (uses[i].from >= 0) mark(found_.from_slot(uses[i].from));
        if (uses[i].collective >= 0) mark(found_.collective_slot(uses[i].collective));
        if (!uses[i].copy) continue;
        const int copy = copy_pattern(found_, role, plan_.segments[s.index()].instructions[i]);
        if (copy >= 0) mark(found_.copy_slot(copy));
      }
    }
    std::vector<int> list;
    for (std::size_t slot = 0; slot < used.size(); ++slot)
      if (used[slot]) list.push_back(static_cast<int>(slot));
    return list;
  }

  const Plan& plan_;
  Patterns found_ = {};
};

}  // namespace

Patterns find_patterns(const Plan& plan) { return PatternFinder(plan).find(); }

int copy_pattern(const Patterns& patterns, const Role& role, const Instruction& instruction) {
  const auto copy = copy_of(role, instruction);
  if (!copy) return -1;
  return static_cast<int>(std::find(patterns.copies.begin(), patterns.copies.end(), *copy) - patterns.copies.begin());
}

}  // namespace foreshard::player
