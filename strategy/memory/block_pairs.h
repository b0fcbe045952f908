// A symmetric bit matrix of pairs of blocks: one row for each block.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace foreshard {

class BlockPairs {
 public:
  using Row = std::vector<std::uint64_t>;  // bit b: block b

  explicit BlockPairs(std::size_t blocks = 0) : rows_(blocks, Row((blocks + 63) / 64, 0)) {}

  std::size_t blocks() const { return rows_.size(); }
  bool has(int a, int b) const { return has(row(a), b); }
  static bool has(const Row& row, int b) { return (row[word(b)] >> (static_cast<unsigned>(b) % 64) & 1U) != 0; }
  const Row& row(int a) const { return rows_[static_cast<std::size_t>(a)]; }

  // Calls f(b) for every pair (a, b), ascending.
  template <class F>
  void each(int a, F f) const {
    const Row& bits = row(a);
    for (std::size_t w = 0; w < bits.size(); ++w) each_bit(w, bits[w], f);
  }
  // Calls f(b) for every bit of `row` that is not one of `known`, ascending. f may add bits to `known`.
  template <class F>
  static void each_but(const Row& row, const Row& known, F f) {
    for (std::size_t w = 0; w < row.size(); ++w) each_bit(w, row[w] & ~known[w], f);
  }

  void add(int a, int b) { set(a, b), set(b, a); }
  // All bits of `others`, in the row of `a` alone; both_ways() completes the other rows.
  void add_row(int a, const Row& others) {
    Row& row = rows_[static_cast<std::size_t>(a)];
    for (std::size_t w = 0; w < row.size(); ++w) row[w] |= others[w];
  }
  // Makes the matrix symmetric, and takes out the pairs of a block with itself.
  void both_ways() {
    const std::size_t words = rows_.empty() ? 0 : rows_[0].size();
    for (std::size_t w = 0; w < words; ++w)  // squares of 64 rows and 64 columns, and those on the other side of the diagonal
      for (std::size_t v = 0; v <= w; ++v) {
        Square here = square(w, v), there = square(v, w);
        transpose(here), transpose(there);
        add(w, v, there);
        add(v, w, here);
      }
    const int count = static_cast<int>(blocks());
    for (int a = 0; a < count; ++a) rows_[static_cast<std::size_t>(a)][word(a)] &= ~bit(a);
  }
  bool operator==(const BlockPairs&) const = default;

  static std::size_t word(int b) { return static_cast<std::size_t>(b) / 64; }
  static std::uint64_t bit(int b) { return std::uint64_t{1} << (static_cast<unsigned>(b) % 64); }

 private:
  using Square = std::array<std::uint64_t, 64>;  // [row]

  template <class F>
  static void each_bit(std::size_t word, std::uint64_t bits, F f) {
    for (; bits != 0; bits &= bits - 1) f(static_cast<int>(64 * word) + std::countr_zero(bits));
  }
  // Rows 64 w to 64 w + 63, columns 64 v to 64 v + 63.
  Square square(std::size_t w, std::size_t v) const {
    Square bits = {};
    for (std::size_t i = 0; i < std::min<std::size_t>(64, rows_.size() - 64 * w); ++i) bits[i] = rows_[64 * w + i][v];
    return bits;
  }
  void add(std::size_t w, std::size_t v, const Square& bits) {
    for (std::size_t i = 0; i < std::min<std::size_t>(64, rows_.size() - 64 * w); ++i) rows_[64 * w + i][v] |= bits[i];
  }
  // Exchanges the upper right and the lower left quarter, then those of each quarter, and so on (Warren 2012, Hacker's Delight, section 7-3).
  static void transpose(Square& bits) {
    std::uint64_t mask = 0x00000000ffffffff;  // columns of the left half of each part
    for (std::size_t half = 32; half > 0; half /= 2, mask ^= mask << half)
      for (std::size_t i = 0; i < 64; i = ((i | half) + 1) & ~half) {
        const std::uint64_t moved = ((bits[i] >> half) ^ bits[i | half]) & mask;
        bits[i] ^= moved << half;
        bits[i | half] ^= moved;
      }
  }

  void set(int a, int b) { rows_[static_cast<std::size_t>(a)][word(b)] |= bit(b); }

  std::vector<Row> rows_ = {};
};

}  // namespace foreshard
