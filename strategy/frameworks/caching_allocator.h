// PyTorch's caching allocator on one stream and without a limit: what counts as allocated is more than what was asked for, and what is
// reserved from the device is never given back.
//
//   request        <= 1 MiB           < 10 MiB             more
//   rounded to     512 B              512 B                512 B
//   cut from       segments of 2 MiB  segments of 20 MiB   a segment of its own, a multiple of 2 MiB
//   rest is kept   always             when over 1 MiB; else it counts as part of the block
//
// A request takes the smallest free piece that is large enough, the lowest of equal ones, of its pool: requests of up to 1 MiB have one of
// their own. A block that is freed merges with free neighbours of its segment.
//
// Constants and rules: PyTorch c10/cuda/CUDACachingAllocator.cpp (kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc, kLargeBuffer,
// kRoundLarge; round_size, get_pool, get_allocation_size, get_free_block, should_split, try_merge_blocks). Streams, max_split_size,
// expandable segments and what it does when the device is full are not modelled.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace foreshard {

class CachingAllocator {
 public:
  struct Place {
    int segment = 0;
    std::int64_t offset = 0, bytes = 0;
  };

  int allocate(std::int64_t bytes);  // a block, to be freed by its number; kNothing for 0
  void free(int block);              // one that is allocated, or kNothing
  static constexpr int kNothing = -1;

  const Place& place(int block) const { return pieces_[static_cast<std::size_t>(block)].at; }
  std::int64_t allocated() const { return allocated_; }
  std::int64_t allocated_peak() const { return allocated_peak_; }
  std::int64_t reserved() const { return reserved_; }  // all segments

 private:
  struct Piece {
    Place at = {};
    bool small = false, is_free = false;
    int before = kNothing, after = kNothing;  // neighbours in the segment
  };
  using Key = std::tuple<std::int64_t, int, std::int64_t, int>;  // bytes, segment, offset, piece
  Piece& piece(int number) { return pieces_[static_cast<std::size_t>(number)]; }
  std::set<Key>& pool(bool small) { return small ? small_ : large_; }
  Key key(int number);
  int add(const Piece& piece);
  int take(std::int64_t bytes, bool small);
  void split(int number, std::int64_t bytes);
  void join(int number, int next);

  std::vector<Piece> pieces_ = {};
  std::vector<int> unused_ = {};           // numbers of pieces that were joined to others
  std::set<Key> small_ = {}, large_ = {};  // free pieces
  int segments_ = 0;
  std::int64_t allocated_ = 0, allocated_peak_ = 0, reserved_ = 0;
};

}  // namespace foreshard
