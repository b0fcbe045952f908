// How PyTorch's caching allocator rounds: what counts as allocated is more than what was asked for. Nothing is freed here:
// model states live as long as the run.
//
//   request        <= 1 MiB          <= 10 MiB            more
//   rounded to     512 B             512 B                512 B
//   cut from       segments of 2 MiB  segments of 20 MiB   a segment of its own, a multiple of 2 MiB
//   rest is kept   always             when over 1 MiB; else it counts as part of the block
//
// Constants: PyTorch c10/cuda/CUDACachingAllocator.cpp (kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc, kLargeBuffer,
// kRoundLarge; should_split).
#pragma once

#include <cstdint>
#include <vector>

namespace foreshard {

class CachingAllocator {
 public:
  void allocate(std::int64_t bytes);  // nothing for 0
  std::int64_t allocated() const { return allocated_; }
  std::int64_t reserved() const { return reserved_; }  // all segments

 private:
  std::int64_t take(std::vector<std::int64_t>& pool, std::int64_t bytes);
  std::vector<std::int64_t> small_ = {}, large_ = {};  // free rests, in no order
  std::int64_t allocated_ = 0, reserved_ = 0;
};

}  // namespace foreshard
