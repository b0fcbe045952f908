#include "strategy/memory/packing.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "core/base/at.h"
#include "core/base/error.h"
#include "strategy/memory/block_meetings.h"

namespace foreshard {

namespace {

// Places blocks one after the other in a given order, by first fit or best fit.
class Placer {
 public:
  Placer(std::span<const TimedBlock> blocks, BlockPairs meets, std::int64_t alignment)
      : meets_(std::move(meets)), offsets_(blocks.size()) {
    for (const TimedBlock& block : blocks) bytes_.push_back(round_up(block.bytes.value, alignment));
  }

  std::int64_t end(int block) const { return offsets_[at(block)] + bytes_[at(block)]; }

  Packing place(const std::vector<int>& order, bool best_fit) {
    placed_.clear();
    Packing packing{.offsets = std::vector<Bytes>(order.size())};
    for (const int block : order) {
      const std::int64_t offset = gap_for(block, best_fit);
      offsets_[at(block)] = offset;
      const auto above = std::ranges::upper_bound(placed_, offset, {}, [&](int other) { return offsets_[at(other)]; });
      placed_.insert(above, block);
      packing.offsets[at(block)] = {offset};
      packing.arena = std::max(packing.arena, Bytes{end(block)});
    }
    return packing;
  }

 private:
  // Offset of the lowest (with `best_fit`: the smallest) gap that is large enough between the placed blocks that are alive with the block;
  // above all of these if there is none.
  std::int64_t gap_for(int block, bool best_fit) const {
    const BlockPairs::Row& meets = meets_.row(block);
    std::int64_t free = 0, best = -1, smallest = std::numeric_limits<std::int64_t>::max();
    for (const int other : placed_) {
      if (!BlockPairs::has(meets, other)) continue;
      const std::int64_t gap = offsets_[at(other)] - free;
      if (gap >= bytes_[at(block)] && gap < smallest) {
        best = free;
        smallest = gap;
        if (!best_fit) break;
      }
      free = std::max(free, end(other));
    }
    return best < 0 ? free : best;
  }

  BlockPairs meets_;
  std::vector<std::int64_t> bytes_ = {}, offsets_ = {};
  std::vector<int> placed_ = {};  // by ascending offset
};

std::int64_t duration(const TimedBlock& block) {
  std::int64_t sum = 0;
  for (const Lifetime& life : block.lifetimes) sum += life.end - life.begin;
  return sum;
}

std::int64_t begin(const TimedBlock& block) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Lifetime& life : block.lifetimes) first = std::min(first, life.begin);
  return first;
}

std::vector<int> order_of(std::span<const TimedBlock> blocks, PackRule rule) {
  const auto key = [&](const TimedBlock& block) -> std::pair<double, double> {  // blocks with a smaller key come first
    const auto bytes = static_cast<double>(block.bytes.value), time = static_cast<double>(duration(block));
    switch (rule) {
      case PackRule::FirstFitSize: return {-bytes, 0};
      case PackRule::BestFitSize: return {-bytes, -time};
      case PackRule::BestFitArea: return {-bytes * time, 0};
      case PackRule::BestFitDuration: return {-time, -bytes};
      case PackRule::BestFitStart: return {static_cast<double>(begin(block)), 0};
      case PackRule::BestFitGiven: return {};
    }
    return {};
  };
  std::vector<std::pair<double, double>> keys;
  for (const TimedBlock& block : blocks) keys.push_back(key(block));
  std::vector<int> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return keys[at(a)] < keys[at(b)]; });
  return order;
}

bool is_best_fit(PackRule rule) { return rule != PackRule::FirstFitSize; }

// Tests of whether two blocks meet that a local search over given pairs may take.
constexpr std::int64_t kMostTests = 20'000'000;
constexpr int kStarts = 4;  // orders from which it begins, the best ones

// The local search: repeatedly moves the blocks that reach the top of the arena to the front of the order, and places all again.
Packing moved_to_front(Placer& placer, std::vector<int> order, bool best_fit, int moves, Bytes bound) {
  Packing best = placer.place(order, best_fit), last = best;
  for (int move = 0; move < moves && best.arena > bound; ++move) {
    const auto at_top = [&](int block) { return placer.end(block) == last.arena.value; };
    if (std::ranges::is_partitioned(order, at_top)) break;  // these blocks are at the front already
    std::ranges::stable_partition(order, at_top);
    last = placer.place(order, best_fit);
    if (last.arena < best.arena) best = last;
  }
  return best;
}

// live_bound, from lifetime_edges.
Bytes most_alive(std::span<const TimedBlock> blocks, const std::vector<LifetimeEdge>& edges, std::int64_t alignment) {
  Bytes most = {};
  std::vector<int> alive(blocks.size(), 0);  // [block]: number of its current lifetimes, which may overlap
  Bytes now = {};
  for (const LifetimeEdge& edge : edges) {
    const std::size_t block = at(edge.block);
    const Bytes bytes{round_up(blocks[block].bytes.value, alignment)};
    if (edge.begins) {
      if (alive[block]++ == 0) now += bytes;
    } else if (--alive[block] == 0) {
      now -= bytes;
    }
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

Bytes live_bound(std::span<const TimedBlock> blocks, std::int64_t alignment) {
  return most_alive(blocks, lifetime_edges(blocks), alignment);
}

Packing pack_equal(std::span<const TimedBlock> blocks, std::int64_t alignment) {
  Packing packing{.offsets = std::vector<Bytes>(blocks.size())};
  if (blocks.empty()) return packing;
  for (const TimedBlock& block : blocks) FS_ASSERT(block.bytes == blocks[0].bytes && block.lifetimes.size() == 1);
  const Bytes bytes{round_up(blocks[0].bytes.value, alignment)};
  std::priority_queue<Bytes, std::vector<Bytes>, std::greater<>> free;
  for (const LifetimeEdge& edge : lifetime_edges(blocks)) {
    Bytes& offset = packing.offsets[at(edge.block)];
    if (!edge.begins) {
      free.push(offset);
      continue;
    }
    if (free.empty()) free.push(std::exchange(packing.arena, packing.arena + bytes));
    offset = free.top();
    free.pop();
  }
  return packing;
}

Packing pack_by(std::span<const TimedBlock> blocks, PackRule rule, std::int64_t alignment) {
  return Placer(blocks, overlaps(blocks), alignment).place(order_of(blocks, rule), is_best_fit(rule));
}

Bytes pairs_bound(std::span<const TimedBlock> blocks, const BlockPairs& meets, std::int64_t alignment) {
  constexpr int kSets = 64;
  const std::vector<int> order = order_of(blocks, PackRule::FirstFitSize);
  Bytes most = {};
  for (std::size_t start = 0; start < std::min<std::size_t>(order.size(), kSets); ++start) {
    BlockPairs::Row all = meets.row(order[start]);  // those that meet every block so far
    std::int64_t bytes = round_up(blocks[at(order[start])].bytes.value, alignment);
    for (const int block : order) {
      if (!BlockPairs::has(all, block)) continue;
      bytes += round_up(blocks[at(block)].bytes.value, alignment);
      const BlockPairs::Row& others = meets.row(block);
      for (std::size_t w = 0; w < all.size(); ++w) all[w] &= others[w];
    }
    most = std::max(most, Bytes{bytes});
  }
  return most;
}

Packing pack(std::span<const TimedBlock> blocks, const PackOptions& options) {
  const std::vector<LifetimeEdge> edges = lifetime_edges(blocks);
  const Bytes bound = most_alive(blocks, edges, options.alignment);
  Placer placer(blocks, overlaps(blocks.size(), edges), options.alignment);
  Packing best;
  std::vector<int> best_order;
  PackRule best_rule = PackRule::FirstFitSize;
  for (int r = 0; r < kPackRules; ++r) {
    const auto rule = static_cast<PackRule>(r);
    std::vector<int> order = order_of(blocks, rule);
    Packing packing = placer.place(order, is_best_fit(rule));
    if (r > 0 && packing.arena >= best.arena) continue;
    best = std::move(packing);
    best_order = std::move(order);
    best_rule = rule;
    if (best.arena <= bound) return best;
  }
  Packing moved = moved_to_front(placer, std::move(best_order), is_best_fit(best_rule), options.moves, bound);
  return moved.arena < best.arena ? moved : best;
}

Packing pack(std::span<const TimedBlock> blocks, const BlockPairs& meets, const PackOptions& options, Bytes enough) {
  const Bytes bound = std::max(enough, pairs_bound(blocks, meets, options.alignment));
  Placer placer(blocks, meets, options.alignment);
  struct Start {
    Packing packing = {};
    std::vector<int> order = {};
    bool best_fit = false;
  };
  std::vector<Start> starts;
  for (int r = 0; r <= kPackRules; ++r)  // the last rule is the given order
    for (const bool best_fit : {false, true}) {
      std::vector<int> order = order_of(blocks, static_cast<PackRule>(r));
      Packing packing = placer.place(order, best_fit);
      if (packing.arena <= bound) return packing;
      starts.push_back({std::move(packing), std::move(order), best_fit});
    }
  std::ranges::stable_sort(starts, {}, [](const Start& start) { return start.packing.arena; });
  const auto tests = static_cast<std::int64_t>(blocks.size() * blocks.size()) + 1;  // at most, of a placement
  const auto moves = static_cast<int>(std::min<std::int64_t>(options.moves, kMostTests / tests / kStarts));
  Packing best = starts.front().packing;
  for (int s = 0; s < kStarts && best.arena > bound; ++s) {
    Start& start = starts[static_cast<std::size_t>(s)];
    Packing moved = moved_to_front(placer, std::move(start.order), start.best_fit, moves, bound);
    if (moved.arena < best.arena) best = std::move(moved);
  }
  return best;
}

}  // namespace foreshard
