// A model of PyTorch's caching allocator on one stream and without a memory limit. It counts more bytes as allocated than were requested,
// since it rounds, and never returns reserved memory to the device.
//
//   request              <= 1 MiB            < 10 MiB             more
//   rounded up to        512 B               512 B                512 B
//   taken from           segments of 2 MiB   segments of 20 MiB   a segment of its own, a multiple of 2 MiB
//   rest of the piece    stays free          stays free if larger than 1 MiB, else it counts as part of the block
//
// There are two pools, one for requests of up to 1 MiB and one for larger ones. A request takes the smallest free piece of its pool that is
// large enough, of equal ones the lowest. A block that is freed merges with free neighbours in its segment.
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

  int allocate(std::int64_t bytes);  // returns the number of the block, by which it is freed; kNothing for 0 bytes
  void free(int block);              // `block` must be allocated, or kNothing
  static constexpr int kNothing = -1;

  const Place& place(int block) const { return pieces_[static_cast<std::size_t>(block)].at; }
  // Bytes of allocated blocks, rounded up; the most so far; and bytes of all segments.
  std::int64_t allocated() const { return allocated_; }
  std::int64_t allocated_peak() const { return allocated_peak_; }
  std::int64_t reserved() const { return reserved_; }

 private:
  struct Piece {
    Place at = {};
    bool small = false, is_free = false;      // small: of the pool for requests of up to 1 MiB
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
  std::vector<int> unused_ = {};           // elements of pieces_ that were merged into others and can be reused
  std::set<Key> small_ = {}, large_ = {};  // free pieces
  int segments_ = 0;
  std::int64_t allocated_ = 0, allocated_peak_ = 0, reserved_ = 0;
};

}  // namespace foreshard
