#include "strategy/memory/ordered_blocks.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/at.h"
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
  BlockOrder(const Plan& plan, const MeetingPoints& meetings, RoleId id, Space space)
      : plan_(plan),
        role_(plan.roles[id.index()]),
        space_(space),
        order_(plan, meetings, id, kRuns),
        index_(role_.buffers.size()) {
    std::size_t slots = 0;
    for (const Buffer& buffer : role_.buffers) slots = std::max(slots, buffer.offsets.size());
    for (std::size_t slot = 0; slot < slots; ++slot)
      for (std::size_t b = 0; b < role_.buffers.size(); ++b) {
        const Buffer& buffer = role_.buffers[b];
        if (buffer.space != space_ || buffer.resident || slot >= buffer.offsets.size()) continue;
        index_[b].push_back(static_cast<int>(blocks_.size()));
        blocks_.push_back(
            {.buffer = {static_cast<std::int32_t>(b)}, .slot = static_cast<int>(slot), .block = {.bytes = buffer.bytes}});
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
    BlockPairs pairs = meets();
    return {.blocks = std::move(blocks_), .meets = std::move(pairs)};
  }

 private:
  int index(const Block& block, const Action& action) const {
    const std::vector<int>& slots = index_[block.buffer.index()];
    return slots.empty() ? -1 : slots[static_cast<std::size_t>(value_of(block.slot, action))];
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
    const auto first_run = [&](std::size_t i) {
      return std::span(blocks_[i].block.lifetimes).first(static_cast<std::size_t>(of_first_run_[i]));
    };
    std::int64_t last = 0;
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

  // Whether compute alone acquires and releases it. Two such lifetimes are alive together exactly where they overlap.
  bool on_compute(const Steps& steps) const {
    const auto is = [&](std::int32_t step) { return step < 0 || order_.clocks().stream(step) == kCompute.value; };
    return is(steps.acquire) && is(steps.release);
  }

  // A lifetime by itself.
  struct Single {
    int block = 0;
    Steps steps = {};
    bool plain = true;  // on_compute
  };

  // Begins and ends of lifetimes as sort_edges has them. Their times are positions of the compute stream, so each is put where its time says.
  std::vector<LifetimeEdge> edges_by_time(const std::vector<LifetimeEdge>& edges) const {
    const auto most = 2 * static_cast<std::int64_t>(compute_.size()) + 3;  // kNever
    const auto key = [&](const LifetimeEdge& edge) { return at(2 * std::min(edge.time, most) + (edge.begins ? 1 : 0)); };
    std::vector<std::uint32_t> next(at(2 * most + 3), 0);  // [key + 1]: where the next edge of this key goes
    for (const LifetimeEdge& edge : edges) ++next[key(edge) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::vector<LifetimeEdge> sorted(edges.size());
    for (const LifetimeEdge& edge : edges) sorted[next[key(edge)]++] = edge;
    return sorted;
  }

  BlockPairs meets() const {
    std::vector<LifetimeEdge> edges;
    std::vector<Single> singles;
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      for (std::size_t n = 0; n < blocks_[i].block.lifetimes.size(); ++n) {
        add_edges(edges, blocks_[i].block.lifetimes[n], static_cast<int>(singles.size()));
        singles.push_back({static_cast<int>(i), steps_[i][n], on_compute(steps_[i][n])});
      }
    BlockPairs pairs(blocks_.size());
    // Blocks with a lifetime now, and which ones these are; of the plain ones a block has at most one.
    BlockPairs::Row plain_alive((blocks_.size() + 63) / 64, 0), others_alive = plain_alive;
    std::vector<int> plain(blocks_.size(), 0);
    std::vector<std::vector<int>> others(blocks_.size());
    for (const LifetimeEdge& edge : edges_by_time(edges)) {
      const Single& single = singles[at(edge.block)];
      const std::size_t word = BlockPairs::word(single.block);
      const std::uint64_t bit = BlockPairs::bit(single.block);
      std::vector<int>& own = others[at(single.block)];
      if (!edge.begins) {
        if (single.plain)
          plain_alive[word] &= ~bit;
        else if (own.erase(std::ranges::find(own, edge.block)); own.empty())
          others_alive[word] &= ~bit;
        continue;
      }
      const auto try_with = [&](int number) {
        const Single& other = singles[at(number)];
        if (other.block != single.block && together(single.steps, other.steps)) pairs.add(single.block, other.block);
      };
      BlockPairs::each_but(others_alive, pairs.row(single.block), [&](int block) {
        for (const int number : others[at(block)]) try_with(number);
      });
      if (single.plain) {
        pairs.add_row(single.block, plain_alive);
        plain_alive[word] |= bit;
        plain[at(single.block)] = edge.block;
        continue;
      }
      BlockPairs::each_but(plain_alive, pairs.row(single.block), [&](int block) { try_with(plain[at(block)]); });
      own.push_back(edge.block);
      others_alive[word] |= bit;
    }
    pairs.both_ways();
    return pairs;
  }

  const Plan& plan_;
  const Role& role_;
  Space space_;
  ProgramOrder order_;
  std::vector<std::vector<int>> index_ = {};  // [buffer][slot]: index of the block; empty: no block of ours
  std::vector<OrderedBlock> blocks_ = {};
  std::vector<std::vector<Steps>> steps_ = {};  // [block][lifetime]
  std::vector<int> of_first_run_ = {};          // [block]: number of its lifetimes that begin in the first run
  std::vector<int> compute_ = {};               // steps of the compute stream
};

}  // namespace

OrderedBlocks ordered_blocks(const Plan& plan, const MeetingPoints& meetings, RoleId id, Space space,
                             const OrderedLimits& most) {
  const Role& role = plan.roles[id.index()];
  if (steps_of(plan, role) > most.steps) return {};
  std::size_t blocks = 0;
  for (const Buffer& buffer : role.buffers) {
    if (buffer.space != space || buffer.resident) continue;
    if (buffer.scope != Scope::Rank) return {};
    blocks += buffer.offsets.size();
  }
  if (blocks > static_cast<std::size_t>(most.blocks)) return {};
  return BlockOrder(plan, meetings, id, space).find();
}

}  // namespace foreshard
