#include "strategy/lower/ring_blocks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace foreshard {

namespace {

// Who acquires or releases a block of a buffer: a segment, under one of its slots.
struct Touch {
  SegmentId segment = {};
  Slot slot = {};
  bool acquires = false;
  bool operator==(const Touch&) const = default;
};

class Rings {
  struct Group {
    std::vector<BufferId> buffers = {};
    std::vector<Bytes> offsets = {};  // [buffer]
    Bytes bytes = {};
    std::vector<std::vector<Lifetime>> slots = {};  // in actions
  };
  // Segments of the actions that use a slot, each with the parameters, as bits, that say its number.
  using Life = std::vector<std::pair<SegmentId, std::uint32_t>>;

 public:
  Rings(const Plan& plan, const Role& role, const std::vector<BufferId>& buffers, std::int64_t alignment)
      : plan_(plan), role_(role), alignment_(alignment), touches_(role.buffers.size()), is_wanted_(role.buffers.size(), 0) {
    for (const BufferId id : buffers) is_wanted_[id.index()] = 1;
  }

  std::vector<RingBlocks> blocks() {
    find_touches();
    group();
    for (int action = 0; action < static_cast<int>(role_.actions.size()); ++action) play(action);
    for (Group& group : groups_)
      for (std::vector<Lifetime>& lifetimes : group.slots)
        for (Lifetime& life : lifetimes)
          if (life.end == kOpen) life.end = end_of_run();
    fold();
    std::vector<RingBlocks> blocks;
    for (Group& group : groups_)
      for (std::size_t slot = 0; slot < group.slots.size(); ++slot)
        blocks.push_back({.buffers = group.buffers,
                          .offsets = group.offsets,
                          .slot = static_cast<int>(slot),
                          .block = {.bytes = group.bytes, .lifetimes = std::move(group.slots[slot])}});
    return blocks;
  }

 private:
  static constexpr std::int64_t kOpen = -1;
  Bytes aligned(Bytes bytes) const { return {round_up(bytes.value, alignment_)}; }
  std::int64_t end_of_run() const { return static_cast<std::int64_t>(role_.actions.size()); }

  void find_touches() {
    std::vector<char> seen(plan_.segments.size(), 0);
    for (const Action& action : role_.actions) {
      if (std::exchange(seen[action.segment.index()], 1) != 0) continue;
      for (const Instruction& instruction : plan_.segments[action.segment.index()].instructions) {
        const bool compute = role_.streams[instruction.stream.index()].kind == StreamKind::Compute;
        const auto note = [&](const Block& block, bool acquires) {
          if (!compute) is_wanted_[block.buffer.index()] = 0;
          touches_[block.buffer.index()].push_back({action.segment, block.slot, acquires});
        };
        for (const Block& block : instruction.acquires) note(block, true);
        for (const Block& block : instruction.releases) note(block, false);
      }
    }
  }

  // Buffers that are touched alike. Those of a stage's layers are, so there are few groups.
  void group() {
    for (std::size_t b = 0; b < role_.buffers.size(); ++b) {
      const Buffer& buffer = role_.buffers[b];
      if (!is_wanted_[b] || touches_[b].empty()) continue;
      const auto alike = [&](const Group& group) {
        return group.slots.size() == buffer.offsets.size() && touches_[group.buffers.front().index()] == touches_[b];
      };
      auto group = std::ranges::find_if(groups_, alike);
      if (group == groups_.end()) group = groups_.insert(group, {.slots = {buffer.offsets.size(), std::vector<Lifetime>{}}});
      group->buffers.push_back({static_cast<std::int32_t>(b)});
      group->offsets.push_back(group->bytes);
      group->bytes += aligned(buffer.bytes);
    }
    of_segment_.resize(plan_.segments.size());
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const Touch& touch : touches_[groups_[g].buffers.front().index()])
        of_segment_[touch.segment.index()].emplace_back(g, &touch);
  }

  void play(int index) {
    const Action& action = role_.actions[static_cast<std::size_t>(index)];
    for (const auto& [group, touch] : of_segment_[action.segment.index()]) {
      std::vector<Lifetime>& lifetimes = groups_[group].slots[static_cast<std::size_t>(value_of(touch->slot, action))];
      const bool alive = !lifetimes.empty() && lifetimes.back().end == kOpen;
      if (touch->acquires) {
        if (!alive) lifetimes.push_back({index, kOpen});
      } else if (alive) {
        lifetimes.back().end = index + 1;
      } else if (lifetimes.empty()) {
        lifetimes.push_back({0, index + 1});  // alive since the last run
      }
    }
  }

  // [parameter]: the first one that says the same number in every action.
  std::vector<std::size_t> same_numbers() const {
    std::size_t count = 0;
    for (const Action& action : role_.actions) count = std::max(count, action.args.size());
    const auto alike = [&](std::size_t p, std::size_t q) {
      return std::ranges::all_of(role_.actions,
                                 [&](const Action& action) { return action.args.empty() || action.args[p] == action.args[q]; });
    };
    std::vector<std::size_t> first(count);
    for (std::size_t p = 0; p < count; ++p)
      while (!alike(first[p], p)) ++first[p];
    return first;
  }

  // The parameter that numbers all slots of a group; none: they have other numbers, too.
  std::optional<std::size_t> number_of(const Group& group, const std::vector<std::size_t>& first) const {
    std::optional<std::size_t> number;
    for (const Touch& touch : touches_[group.buffers.front().index()]) {
      const auto* param = std::get_if<ParamId>(&touch.slot.which);
      if (param == nullptr || number.value_or(first[param->index()]) != first[param->index()]) return {};
      number = first[param->index()];
    }
    return number;
  }

  // Groups that are numbered alike, in one place per slot if that takes fewer bytes.
  void fold() {
    const std::vector<std::size_t> first = same_numbers();
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> families;  // (slots, parameter)
    std::vector<Group> folded;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (const auto number = number_of(groups_[g], first))
        families[{groups_[g].slots.size(), *number}].push_back(g);
      else
        folded.push_back(groups_[g]);
    for (const auto& [key, members] : families) {
      const std::size_t slots = key.first;
      Group all = together(members);
      const std::set<Life> lives = lives_of(members, slots);
      const std::vector<TimedBlock> timed =
          members.size() > 1 && !lives.empty() ? timed_blocks(all, lives) : std::vector<TimedBlock>{};
      Packing packing{.arena = all.bytes};
      if (!timed.empty() && live_bound(timed, alignment_) < all.bytes)
        packing = pack_by(timed, PackRule::FirstFitSize, alignment_);
      if (packing.arena < all.bytes) {
        all.offsets = packing.offsets;
        all.bytes = packing.arena;
        folded.push_back(std::move(all));
      } else {
        for (const std::size_t g : members) folded.push_back(std::move(groups_[g]));
      }
    }
    groups_ = std::move(folded);
  }

  Group together(const std::vector<std::size_t>& members) const {
    Group all{.slots = std::vector<std::vector<Lifetime>>(groups_[members.front()].slots.size())};
    for (const std::size_t g : members) {
      all.buffers.insert(all.buffers.end(), groups_[g].buffers.begin(), groups_[g].buffers.end());
      all.bytes += groups_[g].bytes;
      for (std::size_t slot = 0; slot < all.slots.size(); ++slot)
        all.slots[slot].insert(all.slots[slot].end(), groups_[g].slots[slot].begin(), groups_[g].slots[slot].end());
    }
    return all;
  }

  // The different ways in which a slot is used from when the first of its blocks appears until none is alive: a few, for micro-batches are
  // alike. None: it is alive from one run to the next.
  std::set<Life> lives_of(const std::vector<std::size_t>& members, std::size_t slots) const {
    std::set<Life> lives;
    std::vector<Life> now(slots);
    std::vector<std::set<std::size_t>> alive(slots);  // groups
    for (const Action& action : role_.actions) {
      std::map<std::size_t, std::uint32_t> touched;  // slot -> parameters that say it
      for (const auto& [group, touch] : of_segment_[action.segment.index()]) {
        if (std::ranges::find(members, group) == members.end()) continue;
        const auto slot = static_cast<std::size_t>(value_of(touch->slot, action));
        touched[slot] |= 1U << std::get<ParamId>(touch->slot.which).index();
        if (touch->acquires)
          alive[slot].insert(group);
        else if (alive[slot].erase(group) == 0 && now[slot].empty())
          return {};
      }
      for (const auto& [slot, params] : touched) {
        now[slot].emplace_back(action.segment, params);
        if (alive[slot].empty()) lives.insert(std::exchange(now[slot], {}));
      }
    }
    return std::ranges::all_of(now, &Life::empty) ? lives : std::set<Life>{};
  }

  // [buffer]: when it is alive in one slot, in instructions of all lives one after the other.
  std::vector<TimedBlock> timed_blocks(const Group& group, const std::set<Life>& lives) const {
    std::map<BufferId, std::size_t> index;
    std::vector<TimedBlock> timed;
    for (const BufferId id : group.buffers) {
      index.emplace(id, timed.size());
      timed.push_back({.bytes = role_.buffers[id.index()].bytes});
    }
    std::int64_t now = 0;
    for (const Life& life : lives)
      for (const auto& [segment, params] : life)
        for (const Instruction& instruction : plan_.segments[segment.index()].instructions) {
          const auto lifetimes = [&, params = params](const Block& block) -> std::vector<Lifetime>* {
            const auto found = index.find(block.buffer);
            const auto* param = std::get_if<ParamId>(&block.slot.which);
            if (found == index.end() || (params >> param->index() & 1U) == 0) return nullptr;
            return &timed[found->second].lifetimes;
          };
          for (const Block& block : instruction.acquires)
            if (auto* of = lifetimes(block)) of->push_back({now, kOpen});
          ++now;
          for (const Block& block : instruction.releases)
            if (auto* of = lifetimes(block)) of->back().end = now;
        }
    return timed;
  }

  const Plan& plan_;
  const Role& role_;
  std::int64_t alignment_ = 1;
  std::vector<std::vector<Touch>> touches_ = {};  // [buffer]
  std::vector<char> is_wanted_ = {};              // [buffer]
  std::vector<Group> groups_ = {};
  std::vector<std::vector<std::pair<std::size_t, const Touch*>>> of_segment_ = {};  // [segment]: groups that it touches
};

}  // namespace

std::vector<RingBlocks> ring_blocks(const Plan& plan, const Role& role, const std::vector<BufferId>& buffers,
                                    std::int64_t alignment) {
  return Rings(plan, role, buffers, alignment).blocks();
}

}  // namespace foreshard
