#include "strategy/memory/block_meetings.h"

#include <algorithm>

namespace foreshard {

namespace {

void sort_unique(std::vector<int>& numbers) {
  std::ranges::sort(numbers);
  const auto rest = std::ranges::unique(numbers);
  numbers.erase(rest.begin(), rest.end());
}

}  // namespace

void add_edges(std::vector<LifetimeEdge>& edges, const Lifetime& life, int block) {
  if (life.begin >= life.end) return;
  edges.push_back({life.begin, true, block});
  edges.push_back({life.end, false, block});
}

void sort_edges(std::vector<LifetimeEdge>& edges) {
  std::ranges::stable_sort(edges, [](const LifetimeEdge& a, const LifetimeEdge& b) {
    return a.time != b.time ? a.time < b.time : a.begins < b.begins;
  });
}

std::vector<LifetimeEdge> lifetime_edges(std::span<const TimedBlock> blocks) {
  std::vector<LifetimeEdge> edges;
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (const Lifetime& life : blocks[b].lifetimes) add_edges(edges, life, static_cast<int>(b));
  sort_edges(edges);
  return edges;
}

BlockPairs overlaps(std::span<const TimedBlock> blocks) { return overlaps(blocks.size(), lifetime_edges(blocks)); }

BlockPairs overlaps(std::size_t blocks, const std::vector<LifetimeEdge>& edges) {
  BlockPairs pairs(blocks);
  BlockPairs::Row alive((blocks + 63) / 64, 0);
  std::vector<int> lives(blocks, 0);  // [block]: number of its current lifetimes, which may overlap
  for (const LifetimeEdge& edge : edges) {
    int& now = lives[static_cast<std::size_t>(edge.block)];
    if (!edge.begins) {
      if (--now == 0) alive[BlockPairs::word(edge.block)] &= ~BlockPairs::bit(edge.block);
      continue;
    }
    pairs.add_row(edge.block, alive);
    if (now++ == 0) alive[BlockPairs::word(edge.block)] |= BlockPairs::bit(edge.block);
  }
  pairs.both_ways();
  return pairs;
}

std::vector<std::vector<int>> meetings(std::span<const TimedBlock> blocks) {
  const BlockPairs pairs = overlaps(blocks);
  const int count = static_cast<int>(blocks.size());
  std::vector<std::vector<int>> meets(blocks.size());
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b)
      if (pairs.has(a, b)) meets[static_cast<std::size_t>(a)].push_back(b);
  return meets;
}

std::vector<std::vector<int>> alive_sets(std::span<const TimedBlock> blocks) {
  std::vector<std::vector<int>> sets;
  std::vector<int> alive;
  bool grew = false;
  for (const LifetimeEdge& edge : lifetime_edges(blocks)) {
    if (edge.begins) {
      alive.push_back(edge.block);
      grew = true;
      continue;
    }
    if (grew) sets.push_back(alive), sort_unique(sets.back());
    grew = false;
    alive.erase(std::ranges::find(alive, edge.block));
  }
  return sets;
}

}  // namespace foreshard
