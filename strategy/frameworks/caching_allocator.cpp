#include "strategy/frameworks/caching_allocator.h"

#include "core/base/units.h"

namespace foreshard {

namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kRound = 512, kSmall = kMiB, kSmallSegment = 2 * kMiB, kOwnSegment = 10 * kMiB, kSegment = 20 * kMiB,
                       kRoundSegment = 2 * kMiB;

std::int64_t segment_for(std::int64_t bytes) {
  if (bytes <= kSmall) return kSmallSegment;
  return bytes < kOwnSegment ? kSegment : round_up(bytes, kRoundSegment);
}

}  // namespace

// The smallest free rest that is large enough, or a new segment.
std::int64_t CachingAllocator::take(std::vector<std::int64_t>& pool, std::int64_t bytes) {
  std::size_t best = pool.size();
  for (std::size_t i = 0; i < pool.size(); ++i)
    if (pool[i] >= bytes && (best == pool.size() || pool[i] < pool[best])) best = i;
  if (best == pool.size()) {
    reserved_ += segment_for(bytes);
    return segment_for(bytes);
  }
  const std::int64_t found = pool[best];
  pool[best] = pool.back();
  pool.pop_back();
  return found;
}

void CachingAllocator::allocate(std::int64_t bytes) {
  if (bytes <= 0) return;
  const std::int64_t rounded = round_up(bytes, kRound);
  const bool small = rounded <= kSmall;
  std::vector<std::int64_t>& pool = small ? small_ : large_;
  const std::int64_t block = take(pool, rounded), rest = block - rounded;
  const bool split = small ? rest >= kRound : rest > kSmall;
  if (split) pool.push_back(rest);
  allocated_ += split ? rounded : block;
}

}  // namespace foreshard
