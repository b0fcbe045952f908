// The tree search of pack_into. Its ideas are those of MiniMalloc (Moffitt 2023, "MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning"): look only at packings that are pushed down, place blocks from the lowest offset up, prune by
// sections, and search independent groups of blocks separately.
//
//   section       a set of blocks that are alive at one time, so no two of them overlap. A block is in one or several sections
//   floor         of a block: the highest end of the placed blocks that are alive with it. Placing more blocks can only raise it
//   pushed down   a packing in which no block can be moved to a lower offset. Each block lies at 0 or on another one; so if blocks are
//                 placed in the order of their offsets (equal offsets by rank), each is placed at its floor
//
//   capacity ---------------------------------
//            |          |  blocks still to   |
//            |          |  be placed must    |   a section fails if the lowest floor of its blocks that are still to be
//            |   ____   |  fit between their |   placed, plus the sum of their bytes, is above the capacity
//            |  |    |  |  floors and        |
//            |  | a  |  |  capacity          |
//            |  |____|__|__                  |
//            |  |    b     |                 |
//            --|----------|------------------
//             section 0     section 1
//
// The order of ranks (a number of each block) determines how soon a packing is found. The search tries one order after the other, each with
// a limit of nodes; blocks of sections that failed often come earlier in the next order.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <random>

#include "core/base/at.h"
#include "strategy/memory/block_meetings.h"
#include "strategy/memory/packing.h"

namespace foreshard {

namespace {

constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kUnplaced = -1;

// The problem; the same for every order.
struct Puzzle {
  std::int64_t capacity = 0;
  std::vector<std::int64_t> bytes = {};          // [block]
  std::vector<std::vector<int>> sections = {};   // [block]: the sections that it is in
  std::vector<std::vector<int>> meets = {};      // [block]: the blocks that are alive with it
  std::vector<std::int64_t> section_bytes = {};  // [section]: sum over its blocks
};

Puzzle puzzle_of(std::span<const TimedBlock> blocks, std::int64_t capacity, std::int64_t alignment) {
  Puzzle puzzle{.capacity = capacity, .sections = std::vector<std::vector<int>>(blocks.size()), .meets = meetings(blocks)};
  for (const TimedBlock& block : blocks) puzzle.bytes.push_back(round_up(block.bytes.value, alignment));
  for (const std::vector<int>& alive : alive_sets(blocks)) {
    for (const int b : alive) puzzle.sections[at(b)].push_back(static_cast<int>(puzzle.section_bytes.size()));
    std::int64_t sum = 0;
    for (const int b : alive) sum += puzzle.bytes[at(b)];
    puzzle.section_bytes.push_back(sum);
  }
  return puzzle;
}

// A depth-first search with one order of ranks.
class Search {
 public:
  Search(const Puzzle& puzzle, const std::vector<int>& ranks, std::int64_t most_nodes)
      : puzzle_(puzzle),
        ranks_(ranks),
        most_nodes_(most_nodes),
        floors_(ranks.size(), 0),
        offsets_(ranks.size(), kUnplaced),
        waits_(ranks.size(), 0),
        left_(puzzle.section_bytes),
        lowest_(puzzle.section_bytes.size()),
        fails_(puzzle.section_bytes.size(), 0) {}

  PackAnswer run() {
    std::vector<int> all(ranks_.size());
    std::iota(all.begin(), all.end(), 0);
    if (std::ranges::any_of(left_, [&](std::int64_t bytes) { return bytes > puzzle_.capacity; })) return PackAnswer::Impossible;
    if (place_parts(all, 0, -1)) return PackAnswer::Packed;
    return nodes_ < most_nodes_ ? PackAnswer::Impossible : PackAnswer::GaveUp;
  }
  std::int64_t nodes() const { return nodes_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  const std::vector<double>& fails() const { return fails_; }  // [section]: how often it made the search turn back

 private:
  std::int64_t bytes(int block) const { return puzzle_.bytes[at(block)]; }
  std::int64_t floor(int block) const { return floors_[at(block)]; }
  int rank(int block) const { return ranks_[at(block)]; }
  bool is_placed(int block) const { return offsets_[at(block)] != kUnplaced; }

  struct Undo {
    std::int64_t* where = nullptr;
    std::int64_t was = 0;
  };
  void set(std::int64_t& where, std::int64_t value) {
    undo_.push_back({&where, where});
    where = value;
  }
  void back_to(std::size_t mark) {
    for (; undo_.size() > mark; undo_.pop_back()) *undo_.back().where = undo_.back().was;
  }

  // The connected components of the graph of blocks that are alive together, among the given blocks; the smallest first.
  std::vector<std::vector<int>> parts_of(const std::vector<int>& blocks) {
    std::vector<std::vector<int>> parts;
    for (const int b : blocks) waits_[at(b)] = 1;
    for (const int b : blocks) {
      if (!waits_[at(b)]) continue;
      waits_[at(b)] = 0;
      std::vector<int> part = {b};
      for (std::size_t i = 0; i < part.size(); ++i)
        for (const int other : puzzle_.meets[at(part[i])])
          if (waits_[at(other)]) waits_[at(other)] = 0, part.push_back(other);
      parts.push_back(std::move(part));
    }
    std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.size() < b.size(); });
    return parts;
  }

  // Places the given blocks, at offsets of at least `lowest`, and at `lowest` only those with ranks above `last_rank`.
  bool place_parts(const std::vector<int>& blocks, std::int64_t lowest, int last_rank) {
    const std::size_t mark = undo_.size();
    for (const std::vector<int>& part : parts_of(blocks)) {
      if (place(part, lowest, last_rank)) continue;
      back_to(mark);
      return false;
    }
    return true;
  }

  bool place(const std::vector<int>& part, std::int64_t lowest, int last_rank) {
    const std::size_t mark = undo_.size();
    for (const int b : candidates(part, lowest, last_rank)) {
      if (++nodes_ >= most_nodes_) return false;
      if (put(part, b)) {
        std::vector<int> left;
        left.reserve(part.size());
        std::ranges::copy_if(part, std::back_inserter(left), [&](int other) { return other != b; });
        if (place_parts(left, floor(b), rank(b))) return true;
      }
      back_to(mark);
      if (nodes_ >= most_nodes_) return false;
    }
    return false;
  }

  // The blocks that may be placed next, those with the lowest floor first. A block whose floor is below `lowest` cannot be placed until
  // another one is placed under it. A block is skipped if another whole block would fit below it.
  std::vector<int> candidates(const std::vector<int>& part, std::int64_t lowest, int last_rank) const {
    std::int64_t roof = kHighest;
    for (const int b : part) roof = std::min(roof, std::max(floor(b), lowest) + bytes(b));
    std::vector<int> next;
    for (const int b : part)
      if (floor(b) < roof && (floor(b) > lowest || (floor(b) == lowest && rank(b) > last_rank))) next.push_back(b);
    std::ranges::sort(next, {}, [&](int b) { return std::pair(floor(b), rank(b)); });
    return next;
  }

  // Places a block at its floor and raises the floors of others; false if the remaining blocks of a section no longer fit.
  bool put(const std::vector<int>& part, int placed) {
    const std::int64_t offset = floor(placed), end = offset + bytes(placed);
    if (end > puzzle_.capacity) return fail(placed);
    set(offsets_[at(placed)], offset);
    for (const int s : puzzle_.sections[at(placed)]) set(left_[at(s)], left_[at(s)] - bytes(placed));
    for (const int other : puzzle_.meets[at(placed)])
      if (!is_placed(other) && floor(other) < end) set(floors_[at(other)], end);
    for (const int b : part)
      for (const int s : puzzle_.sections[at(b)]) lowest_[at(s)] = kHighest;
    for (const int b : part) {
      if (b == placed) continue;
      const std::int64_t least = least_offset(b, offset, rank(placed));
      if (least > puzzle_.capacity - bytes(b)) return fail(b);
      for (const int s : puzzle_.sections[at(b)]) lowest_[at(s)] = std::min(lowest_[at(s)], least);
    }
    for (const int b : part)
      for (const int s : puzzle_.sections[at(b)]) {
        if (lowest_[at(s)] == kHighest || lowest_[at(s)] <= puzzle_.capacity - left_[at(s)]) continue;
        ++fails_[at(s)];
        return false;
      }
    return true;
  }

  // A lower bound of the offset of a block that is still to be placed: its floor; if it may not be placed there any more (see place_parts),
  // the lowest possible end of another block that could be placed under it.
  std::int64_t least_offset(int block, std::int64_t lowest, int last_rank) const {
    if (floor(block) > lowest || (floor(block) == lowest && rank(block) > last_rank)) return floor(block);
    std::int64_t least = kHighest;
    for (const int other : puzzle_.meets[at(block)])
      if (!is_placed(other)) least = std::min(least, std::max(floor(other), lowest) + bytes(other));
    return least;
  }

  bool fail(int block) {
    const std::vector<int>& sections = puzzle_.sections[at(block)];
    for (const int s : sections) fails_[at(s)] += 1.0 / static_cast<double>(sections.size());
    return false;
  }

  const Puzzle& puzzle_;
  const std::vector<int>& ranks_;
  std::int64_t most_nodes_ = 0, nodes_ = 0;
  std::vector<std::int64_t> floors_ = {}, offsets_ = {};  // [block]
  std::vector<char> waits_ = {};                          // [block]: used by parts_of: not in a component yet
  std::vector<std::int64_t> left_ = {};                   // [section]: bytes still to be placed
  std::vector<std::int64_t> lowest_ = {};                 // [section]: the lowest least_offset of its blocks still to be placed
  std::vector<double> fails_ = {};                        // [section]
  std::vector<Undo> undo_ = {};
};

// The orders of ranks: three plain ones, then the same three but with blocks of sections that failed often first, slightly randomized, then
// the three plain ones again, and so on.
class Orders {
 public:
  Orders(std::span<const TimedBlock> blocks, const Puzzle& puzzle) : puzzle_(puzzle), weights_(puzzle.section_bytes.size(), 0) {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      std::int64_t most = 0, duration = 0;
      for (const int s : puzzle.sections[b]) most = std::max(most, puzzle.section_bytes[at(s)]);
      for (const Lifetime& life : blocks[b].lifetimes) duration += life.end - life.begin;
      const auto time = static_cast<double>(duration);
      keys_.push_back({static_cast<double>(most), time, time * static_cast<double>(puzzle.bytes[b])});
    }
  }

  // Ranks of the next round.
  std::vector<int> next() {
    enum Key : std::uint8_t { SectionBytes, Duration, Area };
    static constexpr std::array<std::array<Key, 3>, 3> kKeys = {
        {{Duration, Area, SectionBytes}, {SectionBytes, Area, Duration}, {SectionBytes, Duration, Area}}};
    const std::array<Key, 3>& keys = kKeys[round_ % kKeys.size()];
    const std::vector<double> weights = round_ / kKeys.size() % 2 == 0 ? std::vector<double>(keys_.size(), 0) : block_weights();
    ++round_;
    std::vector<int> order(keys_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int a, int b) {
      if (weights[at(a)] != weights[at(b)]) return weights[at(a)] > weights[at(b)];
      for (const Key key : keys)
        if (keys_[at(a)][key] != keys_[at(b)][key]) return keys_[at(a)][key] > keys_[at(b)][key];
      return false;
    });
    std::vector<int> ranks(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) ranks[at(order[i])] = static_cast<int>(i);
    return ranks;
  }

  // Adds the failures of the last round to the sections' weights; those of earlier rounds are discounted.
  void learn(const std::vector<double>& fails) {
    const double most = fails.empty() ? 0 : std::ranges::max(fails);
    for (std::size_t s = 0; s < weights_.size(); ++s) weights_[s] = kForget * weights_[s] + (most > 0 ? fails[s] / most : 0);
  }

 private:
  static constexpr double kForget = 0.8;

  std::vector<double> block_weights() {
    std::vector<double> weights(keys_.size(), 0);
    for (std::size_t b = 0; b < weights.size(); ++b) {
      for (const int s : puzzle_.sections[b]) weights[b] = std::max(weights[b], weights_[at(s)]);
      weights[b] *= 1 + static_cast<double>(random_()) / static_cast<double>(std::minstd_rand::max());
    }
    return weights;
  }

  const Puzzle& puzzle_;
  std::vector<std::array<double, 3>> keys_ = {};  // [block][Key]
  std::vector<double> weights_ = {};              // [section]
  std::size_t round_ = 0;
  std::minstd_rand random_ = std::minstd_rand(1);
};

}  // namespace

PackSearch pack_into(std::span<const TimedBlock> blocks, Bytes capacity, std::int64_t most_nodes, std::int64_t alignment) {
  constexpr std::int64_t kFirstNodes = 20'000;
  constexpr double kGrowth = 1.2;  // factor on the limit of nodes from round to round
  const Puzzle puzzle = puzzle_of(blocks, capacity.value, alignment);
  Orders orders(blocks, puzzle);
  PackSearch result;
  double nodes = kFirstNodes;
  while (result.nodes < most_nodes) {
    const std::vector<int> ranks = orders.next();
    Search search(puzzle, ranks, std::min(static_cast<std::int64_t>(nodes), most_nodes - result.nodes));
    result.answer = search.run();
    result.nodes += search.nodes();
    if (result.answer == PackAnswer::Packed) {
      for (const std::int64_t offset : search.offsets()) result.packing.offsets.push_back({offset});
      for (std::size_t b = 0; b < puzzle.bytes.size(); ++b)
        result.packing.arena = std::max(result.packing.arena, Bytes{search.offsets()[b] + puzzle.bytes[b]});
    }
    if (result.answer != PackAnswer::GaveUp) return result;
    orders.learn(search.fails());
    nodes *= kGrowth;
  }
  return result;
}

PackSearch pack_smallest(std::span<const TimedBlock> blocks, const PackOptions& options, std::int64_t most_nodes) {
  // Arenas are multiples of the alignment. No single capacity may take more than a quarter of the nodes, so that several are tried.
  const std::int64_t unit = options.alignment;
  PackSearch result{.answer = PackAnswer::Packed, .packing = pack(blocks, options)};
  std::int64_t too_small = live_bound(blocks, unit).value / unit - 1;
  std::int64_t capacity = too_small + 1;
  bool is_proven = true;
  while (too_small + 1 < result.packing.arena.value / unit && result.nodes < most_nodes) {
    const std::int64_t nodes = std::min(most_nodes - result.nodes, std::max<std::int64_t>(1, most_nodes / 4));
    PackSearch found = pack_into(blocks, {capacity * unit}, nodes, unit);
    result.nodes += found.nodes;
    if (found.answer == PackAnswer::Packed) {
      result.packing = std::move(found.packing);
    } else {
      too_small = capacity;
      is_proven = is_proven && found.answer == PackAnswer::Impossible;
    }
    capacity = std::midpoint(too_small, result.packing.arena.value / unit);
    if (capacity == too_small) ++capacity;
  }
  if (too_small + 1 < result.packing.arena.value / unit || !is_proven) result.answer = PackAnswer::GaveUp;
  return result;
}

}  // namespace foreshard
