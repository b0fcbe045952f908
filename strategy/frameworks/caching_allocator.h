// A model of PyTorch's caching allocator. It counts more bytes as allocated than were requested, since it rounds, and returns reserved memory
// to the device only when the device has no more.
//
//   request              <= 1 MiB            < 10 MiB             more
//   rounded up to        512 B               512 B                512 B
//   taken from           segments of 2 MiB   segments of 20 MiB   a segment of its own, a multiple of 2 MiB
//   rest of the piece    stays free          stays free if larger than 1 MiB, else it counts as part of the block
//
// Each stream has two pools, one for requests of up to 1 MiB and one for larger ones: a block that one stream freed is not reused by
// another. A request takes the smallest free piece of its pool that is large enough, of equal ones the lowest. A block that is freed merges
// with free neighbours in its segment. When a new segment would exceed the limit, all wholly free segments are returned to the device first.
//
// Constants and rules: PyTorch c10/cuda/CUDACachingAllocator.cpp (kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc, kLargeBuffer,
// kRoundLarge; round_size, get_pool, get_allocation_size, get_free_block, should_split, try_merge_blocks, release_cached_blocks).
// max_split_size and expandable segments are not modelled.
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

  // `limit`: the most bytes of segments that the device gives; 0: any number.
  explicit CachingAllocator(std::int64_t limit = 0) : limit_(limit) {}

  // Returns the number of the block, by which it is freed; kNothing for 0 bytes. `stream` is a small number, 0 for the default stream.
  int allocate(std::int64_t bytes, int stream = 0);
  void free(int block);  // `block` must be allocated, or kNothing
  static constexpr int kNothing = -1;

  const Place& place(int block) const { return pieces_[static_cast<std::size_t>(block)].at; }
  // Bytes of allocated blocks, rounded up; the most so far; and bytes of all segments.
  std::int64_t allocated() const { return allocated_; }
  std::int64_t allocated_peak() const { return allocated_peak_; }
  void forget_peak() { allocated_peak_ = allocated_; }
  std::int64_t reserved() const { return reserved_; }
  bool overflowed() const { return overflowed_; }  // a request exceeded the limit; it was granted all the same

 private:
  struct Piece {
    Place at = {};
    int pool = 0;  // 2 * stream + (1 if for requests of up to 1 MiB)
    bool is_free = false;
    int before = kNothing, after = kNothing;  // neighbours in the segment
  };
  using Key = std::tuple<std::int64_t, int, std::int64_t, int>;  // bytes, segment, offset, piece
  Piece& piece(int number) { return pieces_[static_cast<std::size_t>(number)]; }
  Key key(int number);
  int add(const Piece& piece);
  int take(std::int64_t bytes, int pool);
  void release_free_segments();
  void split(int number, std::int64_t bytes);
  void join(int number, int next);

  std::vector<Piece> pieces_ = {};
  std::vector<int> unused_ = {};          // elements of pieces_ that were merged into others and can be reused
  std::vector<std::set<Key>> free_ = {};  // [pool]: free pieces
  int segments_ = 0;
  std::int64_t limit_ = 0;
  bool overflowed_ = false;
  std::int64_t allocated_ = 0, allocated_peak_ = 0, reserved_ = 0;
};

}  // namespace foreshard
