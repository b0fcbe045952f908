#include "strategy/frameworks/caching_allocator.h"

#include <algorithm>

#include "core/base/error.h"
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

CachingAllocator::Key CachingAllocator::key(int number) {
  const Place& at = piece(number).at;
  return {at.bytes, at.segment, at.offset, number};
}

int CachingAllocator::add(const Piece& piece) {
  if (unused_.empty()) {
    pieces_.push_back(piece);
    return static_cast<int>(pieces_.size()) - 1;
  }
  const int number = unused_.back();
  unused_.pop_back();
  pieces_[static_cast<std::size_t>(number)] = piece;
  return number;
}

// Takes the smallest free piece that is large enough, or reserves a new segment.
int CachingAllocator::take(std::int64_t bytes, bool small) {
  const auto found = pool(small).lower_bound({bytes, 0, 0, 0});
  if (found == pool(small).end()) {
    const std::int64_t size = segment_for(bytes);
    reserved_ += size;
    return add({.at = {.segment = segments_++, .bytes = size}, .small = small});
  }
  const int number = std::get<3>(*found);
  pool(small).erase(found);
  piece(number).is_free = false;
  return number;
}

// Shortens a piece to `bytes`; the rest becomes a free piece.
void CachingAllocator::split(int number, std::int64_t bytes) {
  Piece rest = piece(number);
  rest.at.offset += bytes;
  rest.at.bytes -= bytes;
  rest.is_free = true;
  rest.before = number;
  const int next = add(rest);
  if (rest.after != kNothing) piece(rest.after).before = next;
  piece(number).after = next;
  piece(number).at.bytes = bytes;
  pool(rest.small).insert(key(next));
}

// Merges the piece `next` into the piece before it.
void CachingAllocator::join(int number, int next) {
  Piece& joined = piece(number);
  joined.at.bytes += piece(next).at.bytes;
  joined.after = piece(next).after;
  if (joined.after != kNothing) piece(joined.after).before = number;
  unused_.push_back(next);
}

int CachingAllocator::allocate(std::int64_t bytes) {
  if (bytes <= 0) return kNothing;
  const std::int64_t rounded = round_up(bytes, kRound);
  const bool small = rounded <= kSmall;
  const int block = take(rounded, small);
  const std::int64_t rest = piece(block).at.bytes - rounded;
  if (small ? rest >= kRound : rest > kSmall) split(block, rounded);
  allocated_ += piece(block).at.bytes;
  allocated_peak_ = std::max(allocated_peak_, allocated_);
  return block;
}

void CachingAllocator::free(int block) {
  if (block == kNothing) return;
  FS_ASSERT(!piece(block).is_free);
  std::set<Key>& free_pieces = pool(piece(block).small);
  allocated_ -= piece(block).at.bytes;
  if (const int next = piece(block).after; next != kNothing && piece(next).is_free) {
    free_pieces.erase(key(next));
    join(block, next);
  }
  if (const int before = piece(block).before; before != kNothing && piece(before).is_free) {
    free_pieces.erase(key(before));
    join(before, block);
    block = before;
  }
  piece(block).is_free = true;
  free_pieces.insert(key(block));
}

}  // namespace foreshard
