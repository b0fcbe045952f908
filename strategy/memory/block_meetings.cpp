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
  const std::size_t count = blocks.size();
  std::vector<std::vector<int>> meets(count);
  // [block, block]: the pair was found; two blocks with several lifetimes meet repeatedly.
  std::vector<char> known(count * count, 0);
  std::vector<int> alive;
  for (const LifetimeEdge& edge : lifetime_edges(blocks)) {
    if (!edge.begins) {
      alive.erase(std::ranges::find(alive, edge.block));
      continue;
    }
    const auto block = static_cast<std::size_t>(edge.block);
    for (const int number : alive) {
      const auto other = static_cast<std::size_t>(number);
      if (other == block || known[block * count + other]) continue;
      known[block * count + other] = known[other * count + block] = 1;
      meets[other].push_back(edge.block);
      meets[block].push_back(number);
    }
    alive.push_back(edge.block);
  }
  for (std::vector<int>& others : meets) std::ranges::sort(others);
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
