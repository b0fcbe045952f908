// Places blocks one after the other: the step that every rule of packing.h repeats.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/at.h"
#include "strategy/memory/block_pairs.h"
#include "strategy/memory/packing.h"

namespace foreshard {

class Placer {
 public:
  Placer(std::span<const TimedBlock> blocks, BlockPairs meets, std::int64_t alignment)
      : meets_(std::move(meets)), places_(blocks.size()) {
    for (const TimedBlock& block : blocks) bytes_.push_back(round_up(block.bytes.value, alignment));
  }

  std::int64_t bytes(int block) const { return bytes_[at(block)]; }
  const BlockPairs& meets() const { return meets_; }
  std::int64_t end(int block) const { return places_[at(block)].end; }

  // By first fit or best fit. Ends early once the arena is not below `limit`: then some offsets are missing.
  Packing place(const std::vector<int>& order, bool best_fit, Bytes limit = {std::numeric_limits<std::int64_t>::max()}) {
    placed_.clear();
    Packing packing{.offsets = std::vector<Bytes>(order.size())};
    for (const int block : order) {
      const std::int64_t offset = gap_for(block, best_fit);
      put(block, offset);
      const auto above = std::ranges::upper_bound(placed_, offset, {}, [&](int other) { return places_[at(other)].begin; });
      placed_.insert(above, block);
      packing.offsets[at(block)] = {offset};
      packing.arena = std::max(packing.arena, Bytes{end(block)});
      if (packing.arena >= limit) break;
    }
    return packing;
  }

  // From the lowest offset up: always the block that can lie lowest on those that are placed, the first one of `order` if there are several.
  Packing place_lowest(const std::vector<int>& order) {
    std::vector<int> rank(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) rank[at(order[i])] = static_cast<int>(i);
    std::vector<std::int64_t> floors(order.size(), 0);
    std::vector<char> is_placed(order.size(), 0);
    using Floor = std::tuple<std::int64_t, int, int>;  // floor, rank, block
    std::priority_queue<Floor, std::vector<Floor>, std::greater<>> next;
    for (const int block : order) next.emplace(0, rank[at(block)], block);
    Packing packing{.offsets = std::vector<Bytes>(order.size())};
    while (!next.empty()) {
      const auto [floor, number, block] = next.top();
      next.pop();
      if (is_placed[at(block)] || floor != floors[at(block)]) continue;
      is_placed[at(block)] = 1;
      put(block, floor);
      packing.offsets[at(block)] = {floor};
      packing.arena = std::max(packing.arena, Bytes{end(block)});
      meets_.each(block, [&](int other) {
        if (is_placed[at(other)] || floors[at(other)] >= end(block)) return;
        floors[at(other)] = end(block);
        next.emplace(end(block), rank[at(other)], other);
      });
    }
    return packing;
  }

 private:
  struct Place {
    std::int64_t begin = 0, end = 0;
  };

  void put(int block, std::int64_t offset) { places_[at(block)] = {offset, offset + bytes_[at(block)]}; }

  // Offset of the lowest (with `best_fit`: the smallest) gap that is large enough between the placed blocks that are alive with the block;
  // above all of these if there is none. Most of the time of packing is spent here. Whether a block is alive with another one cannot be
  // predicted, so those that are get listed without a branch, some at a time.
  std::int64_t gap_for(int block, bool best_fit) const {
    constexpr std::size_t kAtATime = 64;
    const std::uint64_t* const meets = meets_.row(block).data();
    const std::int64_t bytes = bytes_[at(block)];
    std::int64_t free = 0, best = -1, smallest = std::numeric_limits<std::int64_t>::max();
    std::array<unsigned, kAtATime> alive;
    for (std::size_t from = 0; from < placed_.size(); from += kAtATime) {
      const std::size_t to = std::min(from + kAtATime, placed_.size());
      std::size_t count = 0;
      for (std::size_t i = from; i < to; ++i) {
        const auto other = static_cast<unsigned>(placed_[i]);
        alive[count] = other;
        count += meets[other / 64] >> (other % 64) & 1U;
      }
      for (std::size_t i = 0; i < count; ++i) {
        const Place& place = places_[alive[i]];
        const std::int64_t gap = place.begin - free;
        if (gap >= bytes && gap < smallest) {
          best = free;
          smallest = gap;
          if (!best_fit || gap == bytes) return best;  // none is better
        }
        free = std::max(free, place.end);
      }
    }
    return best < 0 ? free : best;
  }

  BlockPairs meets_;
  std::vector<std::int64_t> bytes_ = {};
  std::vector<Place> places_ = {};
  std::vector<int> placed_ = {};  // by ascending offset
};

}  // namespace foreshard
