#include "strategy/memory/ejection.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "core/base/at.h"

namespace foreshard {

namespace {

class Ejection {
 public:
  Ejection(std::span<const TimedBlock> blocks, const BlockPairs& meets, std::int64_t capacity, std::int64_t alignment)
      : capacity_(capacity), beside_(blocks.size()), offsets_(blocks.size(), kOut), weights_(blocks.size(), 1.0) {
    for (int b = 0; b < static_cast<int>(blocks.size()); ++b) {
      bytes_.push_back(round_up(blocks[at(b)].bytes.value, alignment));
      meets.each(b, [&](int other) { beside_[at(b)].push_back(other); });
    }
  }

  // False: a block is larger than the arena, or some were still out at the limits.
  bool place_all(std::span<const Bytes> first, const EjectionLimits& limits) {
    for (int b = 0; b < static_cast<int>(bytes_.size()); ++b) {
      if (bytes_[at(b)] > capacity_) return false;
      if (!first.empty() && first[at(b)].value + bytes_[at(b)] <= capacity_)
        offsets_[at(b)] = first[at(b)].value;
      else
        wait(b);
    }
    std::int64_t steps = limits.steps_per_block * static_cast<std::int64_t>(bytes_.size());
    while (!waiting_.empty() && steps-- > 0 && tests_ < limits.tests) {
      const int block = -waiting_.top().second;
      waiting_.pop();
      const std::int64_t offset = best_place(block);
      for (const int other : beside_[at(block)])
        if (overlaps(block, offset, other)) take_out(other);
      offsets_[at(block)] = offset;
    }
    return waiting_.empty();
  }

  Packing packing() const {
    Packing made;
    for (std::size_t b = 0; b < offsets_.size(); ++b) {
      made.offsets.push_back({offsets_[b]});
      made.arena = std::max(made.arena, Bytes{offsets_[b] + bytes_[b]});
    }
    return made;
  }

 private:
  static constexpr std::int64_t kOut = -1;
  static constexpr double kGrowth = 1.1;
  struct Placed {
    std::int64_t from = 0, to = 0;
    double cost = 0;
  };

  bool overlaps(int block, std::int64_t offset, int other) const {
    const std::int64_t from = offsets_[at(other)];
    return from != kOut && from < offset + bytes_[at(block)] && offset < from + bytes_[at(other)];
  }
  double cost(int block) const { return weights_[at(block)] * static_cast<double>(bytes_[at(block)]); }
  // Costly blocks first, of equal ones the first.
  void wait(int block) { waiting_.emplace(cost(block), -block); }
  void take_out(int block) {
    offsets_[at(block)] = kOut;
    weights_[at(block)] *= kGrowth;
    wait(block);
  }

  // The lowest of the places where the blocks that it overlaps cost least. Candidates are the ends of the arena and of the blocks beside it.
  std::int64_t best_place(int block) {
    const std::int64_t bytes = bytes_[at(block)];
    places_.assign({0, capacity_ - bytes});
    placed_.clear();
    for (const int other : beside_[at(block)]) {
      const std::int64_t from = offsets_[at(other)], to = from + bytes_[at(other)];
      if (from == kOut) continue;
      placed_.push_back({from, to, cost(other)});
      if (from >= bytes) places_.push_back(from - bytes);
      if (to + bytes <= capacity_) places_.push_back(to);
    }
    std::ranges::sort(places_);
    places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
    std::int64_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (const std::int64_t place : places_) {
      tests_ += static_cast<std::int64_t>(beside_[at(block)].size());
      double sum = 0;
      for (const Placed& other : placed_) {
        if (other.from >= place + bytes || place >= other.to) continue;
        sum += other.cost;
        if (sum >= least) break;
      }
      if (sum < least) least = sum, best = place;
      if (least == 0) break;
    }
    return best;
  }

  std::int64_t capacity_ = 0;
  std::vector<std::vector<int>> beside_;
  std::vector<std::int64_t> bytes_ = {}, offsets_;
  std::vector<double> weights_;
  std::priority_queue<std::pair<double, int>> waiting_ = {};  // {cost, minus the block}
  std::vector<std::int64_t> places_ = {};
  std::vector<Placed> placed_ = {};  // beside the block that is being placed
  std::int64_t tests_ = 0;           // so far
};

}  // namespace

std::optional<Packing> pack_by_ejection(std::span<const TimedBlock> blocks, const BlockPairs& meets, Bytes capacity,
                                        std::int64_t alignment, std::span<const Bytes> first, const EjectionLimits& limits) {
  Ejection ejection(blocks, meets, capacity.value / alignment * alignment, alignment);
  if (!ejection.place_all(first, limits)) return {};
  return ejection.packing();
}

}  // namespace foreshard
