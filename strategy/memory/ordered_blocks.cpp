#include "strategy/memory/ordered_blocks.h"

#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include "core/plan/program_order.h"
#include "strategy/memory/block_meetings.h"

namespace foreshard {

namespace {

// Runs whose order is looked at: a block of the first run may meet blocks of the second.
constexpr int kRuns = 2;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

constexpr StreamId kCompute{0};  // the compute stream of every role

constexpr std::int32_t kBefore = -1, kNone = -1;  // acquired before the first run; not released

struct Steps {  // of a lifetime
  std::int32_t acquire = kBefore, release = kNone;
};

int steps_of(const Plan& plan, const Role& role) {
  std::size_t steps = 0;
  for (const Action& action : role.actions) steps += plan.segments[action.segment.index()].instructions.size();
  return static_cast<int>(std::min<std::size_t>(steps, std::numeric_limits<int>::max()));
}

class BlockOrder {
 public:
  BlockOrder(const Plan& plan, RoleId id, Space space)
      : plan_(plan), role_(plan.roles[id.index()]), space_(space), order_(plan, id, kRuns), first_(role_.buffers.size(), -1) {
    for (std::size_t b = 0; b < role_.buffers.size(); ++b) {
      const Buffer& buffer = role_.buffers[b];
      if (buffer.space != space_ || buffer.resident) continue;
      first_[b] = static_cast<int>(blocks_.size());
      for (int slot = 0; slot < static_cast<int>(buffer.offsets.size()); ++slot)
        blocks_.push_back({.buffer = {static_cast<std::int32_t>(b)}, .slot = slot, .block = {.bytes = buffer.bytes}});
    }
    of_first_run_.resize(blocks_.size(), 0);
    steps_.resize(blocks_.size());
    for (int step = 0; step < order_.count(); ++step)
      if (order_.clocks().stream(step) == kCompute.value) compute_.push_back(step);
  }

  OrderedBlocks find() {
    for (int step = 0; step < order_.count(); ++step) {
      const ProgramStep& at = order_.step(step);
      const Action& action = role_.actions[static_cast<std::size_t>(at.action)];
      const Instruction& run = plan_.segments[action.segment.index()].instructions[static_cast<std::size_t>(at.instruction)];
      for (const Block& block : run.acquires)
        if (const int i = index(block, action); i >= 0) begin(i, step, begin_of(step));
      for (const Block& block : run.releases) {
        const int i = index(block, action);
        if (i < 0) continue;
        if (lives(i).empty()) begin(i, kBefore, 0);  // it was acquired in the run before
        lives(i).back().end = end_of(step);
        steps_[static_cast<std::size_t>(i)].back().release = step;
      }
    }
    keep_first_run();
    return {.blocks = blocks_, .meets = meets()};
  }

 private:
  int index(const Block& block, const Action& action) const {
    const int first = first_[block.buffer.index()];
    return first < 0 ? -1 : first + value_of(block.slot, action);
  }
  std::vector<Lifetime>& lives(int i) { return blocks_[static_cast<std::size_t>(i)].block.lifetimes; }

  std::int64_t begin_of(int acquire) const {
    const StreamClocks& clocks = order_.clocks();
    if (clocks.stream(acquire) == kCompute.value) return 2 * std::int64_t{clocks.position(acquire)} + 1;
    return 2 * std::int64_t{clocks.ended_before(acquire)[kCompute.index()]};
  }
  // Compute instructions wait for more and more, so the first one that waits for the release is found by halving.
  std::int64_t end_of(int release) const {
    const StreamClocks& clocks = order_.clocks();
    if (clocks.stream(release) == kCompute.value) return 2 * std::int64_t{clocks.position(release)} + 2;
    const auto waits =
        std::partition_point(compute_.begin(), compute_.end(), [&](int step) { return !clocks.before(release, step); });
    return waits == compute_.end() ? kNever : 2 * (waits - compute_.begin()) + 1;
  }

  void begin(int i, int step, std::int64_t at) {
    lives(i).push_back({at, kNever});
    steps_[static_cast<std::size_t>(i)].push_back({step, kNone});
    if (step < order_.count() / kRuns) ++of_first_run_[static_cast<std::size_t>(i)];
  }

  // The runs are alike, so of the second run only what may meet a block of the first one counts, up to the end of the last of these.
  void keep_first_run() {
    std::int64_t last = 0;
    const auto first_run = [&](std::size_t i) {
      return std::span(blocks_[i].block.lifetimes).first(static_cast<std::size_t>(of_first_run_[i]));
    };
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      for (const Lifetime& life : first_run(i)) last = std::max(last, life.end);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      std::vector<Lifetime>& lifetimes = blocks_[i].block.lifetimes;
      const auto later = lifetimes.begin() + of_first_run_[i];
      for (auto life = later; life != lifetimes.end(); ++life) life->end = std::min(life->end, last);
      const auto out = std::find_if(later, lifetimes.end(), [&](const Lifetime& life) { return life.begin >= last; });
      lifetimes.erase(out, lifetimes.end());  // they begin one after the other
    }
  }

  // No wait keeps apart what these steps acquire and release.
  bool together(const Steps& a, const Steps& b) const {
    const auto ends_before = [&](const Steps& first, const Steps& second) {
      return first.release != kNone && second.acquire != kBefore && order_.clocks().before(first.release, second.acquire);
    };
    return !ends_before(a, b) && !ends_before(b, a);
  }

  std::vector<std::vector<int>> meets() const {
    std::vector<TimedBlock> single;  // each lifetime by itself
    std::vector<std::pair<int, Steps>> of;
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      for (std::size_t n = 0; n < blocks_[i].block.lifetimes.size(); ++n) {
        single.push_back({.lifetimes = {blocks_[i].block.lifetimes[n]}});
        of.emplace_back(static_cast<int>(i), steps_[i][n]);
      }
    std::vector<std::set<int>> found(blocks_.size());
    std::vector<int> alive;
    for (const LifetimeEdge& edge : lifetime_edges(single)) {
      if (!edge.begins) {
        alive.erase(std::ranges::find(alive, edge.block));
        continue;
      }
      const auto& [block, steps] = of[static_cast<std::size_t>(edge.block)];
      for (const int number : alive) {
        const auto& [other, others] = of[static_cast<std::size_t>(number)];
        std::set<int>& known = found[static_cast<std::size_t>(block)];
        if (other == block || known.contains(other) || !together(steps, others)) continue;
        known.insert(other);
        found[static_cast<std::size_t>(other)].insert(block);
      }
      alive.push_back(edge.block);
    }
    std::vector<std::vector<int>> meets;
    for (const std::set<int>& others : found) meets.emplace_back(others.begin(), others.end());
    return meets;
  }

  const Plan& plan_;
  const Role& role_;
  Space space_;
  ProgramOrder order_;
  std::vector<int> first_ = {};  // [buffer]: index of its first block; -1: no block of ours
  std::vector<OrderedBlock> blocks_ = {};
  std::vector<std::vector<Steps>> steps_ = {};  // [block][lifetime]
  std::vector<int> of_first_run_ = {};          // [block]: number of its lifetimes that begin in the first run
  std::vector<int> compute_ = {};               // steps of the compute stream
};

}  // namespace

OrderedBlocks ordered_blocks(const Plan& plan, RoleId id, Space space, int most_steps) {
  const Role& role = plan.roles[id.index()];
  if (steps_of(plan, role) > most_steps) return {};
  for (const Buffer& buffer : role.buffers)
    if (buffer.space == space && !buffer.resident && buffer.scope != Scope::Rank) return {};
  return BlockOrder(plan, id, space).find();
}

}  // namespace foreshard
