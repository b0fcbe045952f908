#include "strategy/memory/packing.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "core/base/at.h"
#include "core/base/error.h"
#include "strategy/memory/block_meetings.h"
#include "strategy/memory/placer.h"

namespace foreshard {

namespace {

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

constexpr int kStarts = 4;  // orders from which it begins, the best ones

// The local search: repeatedly moves the blocks that reach the top of the arena to the front of the order, and places all again. `best`: the
// packing of the order as it is.
Packing moved_to_front(Placer& placer, Packing best, std::vector<int> order, bool best_fit, int moves, Bytes bound) {
  Packing last = best;
  for (int move = 0; move < moves && best.arena > bound; ++move) {
    const auto at_top = [&](int block) { return last.offsets[at(block)].value + placer.bytes(block) == last.arena.value; };
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
  return moved_to_front(placer, std::move(best), std::move(best_order), is_best_fit(best_rule), options.moves, bound);
}

namespace {

std::int64_t last_end(const TimedBlock& block) {
  std::int64_t last = 0;
  for (const Lifetime& life : block.lifetimes) last = std::max(last, life.end);
  return last;
}

// Those first that are beside the most bytes; those of which these bytes times their own are the most; those that end last.
std::vector<std::vector<int>> more_orders(std::span<const TimedBlock> blocks, const Placer& placer) {
  const int count = static_cast<int>(blocks.size());
  std::vector<double> beside(blocks.size(), 0);
  for (int b = 0; b < count; ++b)
    placer.meets().each(b, [&](int other) { beside[at(b)] += static_cast<double>(placer.bytes(other)); });
  std::vector<std::vector<int>> orders(3, std::vector<int>(blocks.size()));
  for (std::vector<int>& order : orders) std::iota(order.begin(), order.end(), 0);
  const auto area = [&](int b) { return beside[at(b)] * static_cast<double>(placer.bytes(b)); };
  std::ranges::stable_sort(orders[0], std::greater<>{}, [&](int b) { return std::pair(beside[at(b)], placer.bytes(b)); });
  std::ranges::stable_sort(orders[1], std::greater<>{}, [&](int b) { return std::pair(area(b), placer.bytes(b)); });
  std::ranges::stable_sort(orders[2], std::greater<>{}, [&](int b) { return last_end(blocks[at(b)]); });
  return orders;
}

}  // namespace

Packing pack(std::span<const TimedBlock> blocks, const BlockPairs& meets, const PackOptions& options, Bytes enough) {
  const Bytes bound = std::max(enough, pairs_bound(blocks, meets, options.alignment));
  Placer placer(blocks, meets, options.alignment);
  struct Start {
    Packing packing = {};
    std::vector<int> order = {};
    bool best_fit = false;
  };
  const auto tests = static_cast<std::int64_t>(blocks.size() * blocks.size()) + 1;  // at most, of a placement
  const auto moves = static_cast<int>(std::min<std::int64_t>(options.moves, options.tests / tests / kStarts));
  const std::size_t starts_used = moves > 0 ? kStarts : 1;  // without moves only the best packing counts
  std::vector<Start> starts;
  std::multiset<Bytes> of_best;  // arenas of the best of them, the only ones that the local search begins from
  constexpr Bytes kNoLimit{std::numeric_limits<std::int64_t>::max()};
  std::vector<std::vector<int>> orders;
  for (int r = 0; r <= kPackRules; ++r)
    orders.push_back(order_of(blocks, static_cast<PackRule>(r)));  // the last: the given order
  if (options.thorough)
    for (std::vector<int>& order : more_orders(blocks, placer)) orders.push_back(std::move(order));
  for (const std::vector<int>& order : orders)
    for (const bool best_fit : {false, true}) {
      Packing packing = placer.place(order, best_fit, of_best.size() < starts_used ? kNoLimit : *of_best.rbegin());
      if (packing.arena <= bound) return packing;
      of_best.insert(packing.arena);
      if (of_best.size() > starts_used) of_best.erase(std::prev(of_best.end()));
      starts.push_back({std::move(packing), order, best_fit});
    }
  Packing best;
  if (options.thorough)
    for (const std::vector<int>& order : orders) {
      Packing packing = placer.place_lowest(order);
      if (packing.arena <= bound) return packing;
      if (best.offsets.empty() || packing.arena < best.arena) best = std::move(packing);
    }
  std::ranges::stable_sort(starts, {}, [](const Start& start) { return start.packing.arena; });
  if (best.offsets.empty() || starts.front().packing.arena < best.arena) best = starts.front().packing;
  for (std::size_t s = 0; moves > 0 && s < starts_used && best.arena > bound; ++s) {
    Start& start = starts[s];
    Packing moved = moved_to_front(placer, std::move(start.packing), std::move(start.order), start.best_fit, moves, bound);
    if (moved.arena < best.arena) best = std::move(moved);
  }
  return best;
}

}  // namespace foreshard
