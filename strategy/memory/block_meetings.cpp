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

std::vector<LifetimeEdge> lifetime_edges(std::span<const TimedBlock> blocks) {
  std::vector<LifetimeEdge> edges;
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (const Lifetime& life : blocks[b].lifetimes) {
      if (life.begin >= life.end) continue;
      edges.push_back({life.begin, true, static_cast<int>(b)});
      edges.push_back({life.end, false, static_cast<int>(b)});
    }
  std::ranges::stable_sort(edges, [](const LifetimeEdge& a, const LifetimeEdge& b) {
    return a.time != b.time ? a.time < b.time : a.begins < b.begins;
  });
  return edges;
}

std::vector<std::vector<int>> meetings(std::span<const TimedBlock> blocks) {
  std::vector<std::vector<int>> meets(blocks.size());
  std::vector<int> alive;
  for (const LifetimeEdge& edge : lifetime_edges(blocks)) {
    if (!edge.begins) {
      alive.erase(std::ranges::find(alive, edge.block));
      continue;
    }
    for (const int other : alive) {
      if (other == edge.block) continue;
      meets[static_cast<std::size_t>(other)].push_back(edge.block);
      meets[static_cast<std::size_t>(edge.block)].push_back(other);
    }
    alive.push_back(edge.block);
  }
  for (std::vector<int>& others : meets) sort_unique(others);
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
