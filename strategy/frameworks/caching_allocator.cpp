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
int CachingAllocator::take(std::int64_t bytes, int pool) {
  std::set<Key>& pieces = free_[static_cast<std::size_t>(pool)];
  const auto found = pieces.lower_bound({bytes, 0, 0, 0});
  if (found == pieces.end()) {
    const std::int64_t size = segment_for(bytes);
    if (limit_ > 0 && reserved_ + size > limit_) release_free_segments();
    if (limit_ > 0 && reserved_ + size > limit_) overflowed_ = true;
    reserved_ += size;
    return add({.at = {.segment = segments_++, .bytes = size}, .pool = pool});
  }
  const int number = std::get<3>(*found);
  pieces.erase(found);
  piece(number).is_free = false;
  return number;
}

void CachingAllocator::release_free_segments() {
  for (std::set<Key>& pieces : free_)
    for (auto at = pieces.begin(); at != pieces.end();) {
      const int number = std::get<3>(*at);
      const Piece& free = piece(number);
      if (free.before != kNothing || free.after != kNothing) {
        ++at;
        continue;
      }
      reserved_ -= free.at.bytes;
      unused_.push_back(number);
      at = pieces.erase(at);
    }
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
  free_[static_cast<std::size_t>(rest.pool)].insert(key(next));
}

// Merges the piece `next` into the piece before it.
void CachingAllocator::join(int number, int next) {
  Piece& joined = piece(number);
  joined.at.bytes += piece(next).at.bytes;
  joined.after = piece(next).after;
  if (joined.after != kNothing) piece(joined.after).before = number;
  unused_.push_back(next);
}

int CachingAllocator::allocate(std::int64_t bytes, int stream) {
  if (bytes <= 0) return kNothing;
  const std::int64_t rounded = round_up(bytes, kRound);
  const bool small = rounded <= kSmall;
  const int pool = 2 * stream + (small ? 1 : 0);
  if (free_.size() <= static_cast<std::size_t>(pool)) free_.resize(static_cast<std::size_t>(pool) + 1);
  const int block = take(rounded, pool);
  const std::int64_t rest = piece(block).at.bytes - rounded;
  if (small ? rest >= kRound : rest > kSmall) split(block, rounded);
  allocated_ += piece(block).at.bytes;
  allocated_peak_ = std::max(allocated_peak_, allocated_);
  return block;
}

void CachingAllocator::free(int block) {
  if (block == kNothing) return;
  FS_ASSERT(!piece(block).is_free);
  std::set<Key>& free_pieces = free_[static_cast<std::size_t>(piece(block).pool)];
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
