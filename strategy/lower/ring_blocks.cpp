#include "strategy/lower/ring_blocks.h"

#include <algorithm>
#include <map>
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
 public:
  Rings(const Plan& plan, const Role& role, const std::vector<BufferId>& buffers, std::int64_t alignment)
      : plan_(plan), role_(role), alignment_(alignment), touches_(role.buffers.size()), is_wanted_(role.buffers.size(), 0) {
    for (const BufferId id : buffers) is_wanted_[id.index()] = 1;
  }

  std::vector<RingBlocks> blocks() {
    find_touches();
    group();
    for (int action = 0; action < static_cast<int>(role_.actions.size()); ++action) play(action);
    for (std::vector<TimedBlock>& slots : timed_)
      for (TimedBlock& block : slots)
        for (Lifetime& life : block.lifetimes)
          if (life.end == kOpen) life.end = end_of_run();
    std::vector<RingBlocks> blocks;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (std::size_t slot = 0; slot < timed_[g].size(); ++slot)
        blocks.push_back({.buffers = groups_[g], .slot = static_cast<int>(slot), .block = std::move(timed_[g][slot])});
    return blocks;
  }

 private:
  static constexpr std::int64_t kOpen = -1;
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
      const std::size_t slots = role_.buffers[b].offsets.size();
      if (!is_wanted_[b] || touches_[b].empty()) continue;
      std::size_t g = 0;
      while (g < groups_.size() && !(timed_[g].size() == slots && touches_[groups_[g].front().index()] == touches_[b])) ++g;
      if (g == groups_.size()) {
        groups_.emplace_back();
        timed_.emplace_back(slots);
      }
      groups_[g].push_back({static_cast<std::int32_t>(b)});
      for (TimedBlock& block : timed_[g]) block.bytes += Bytes{round_up(role_.buffers[b].bytes.value, alignment_)};
    }
    of_segment_.resize(plan_.segments.size());
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const Touch& touch : touches_[groups_[g].front().index()])
        of_segment_[touch.segment.index()].emplace_back(g, &touch);
  }

  void play(int index) {
    const Action& action = role_.actions[static_cast<std::size_t>(index)];
    for (const auto& [group, touch] : of_segment_[action.segment.index()]) {
      std::vector<Lifetime>& lifetimes = timed_[group][static_cast<std::size_t>(value_of(touch->slot, action))].lifetimes;
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

  const Plan& plan_;
  const Role& role_;
  std::int64_t alignment_ = 1;
  std::vector<std::vector<Touch>> touches_ = {};  // [buffer]
  std::vector<char> is_wanted_ = {};              // [buffer]
  std::vector<std::vector<BufferId>> groups_ = {};
  std::vector<std::vector<TimedBlock>> timed_ = {};                                 // [group][slot]
  std::vector<std::vector<std::pair<std::size_t, const Touch*>>> of_segment_ = {};  // [segment]: groups that it touches
};

}  // namespace

std::vector<RingBlocks> ring_blocks(const Plan& plan, const Role& role, const std::vector<BufferId>& buffers,
                                    std::int64_t alignment) {
  return Rings(plan, role, buffers, alignment).blocks();
}

}  // namespace foreshard
