// Pairs of blocks, as bits: a row for each block.
#pragma once

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
    for (std::size_t w = 0; w < bits.size(); ++w)
      for (std::uint64_t left = bits[w]; left != 0; left &= left - 1) f(static_cast<int>(64 * w) + std::countr_zero(left));
  }

  void add(int a, int b) { set(a, b), set(b, a); }
  // All bits of `others`, in the row of `a` alone; both_ways() completes the other rows.
  void add_row(int a, const Row& others) {
    Row& row = rows_[static_cast<std::size_t>(a)];
    for (std::size_t w = 0; w < row.size(); ++w) row[w] |= others[w];
  }
  // Makes the matrix symmetric, and takes out the pairs of a block with itself.
  void both_ways() {
    const int count = static_cast<int>(blocks());
    for (int a = 0; a < count; ++a) each(a, [&](int b) { set(b, a); });
    for (int a = 0; a < count; ++a) rows_[static_cast<std::size_t>(a)][word(a)] &= ~bit(a);
  }
  bool operator==(const BlockPairs&) const = default;

  static std::size_t word(int b) { return static_cast<std::size_t>(b) / 64; }
  static std::uint64_t bit(int b) { return std::uint64_t{1} << (static_cast<unsigned>(b) % 64); }

 private:
  void set(int a, int b) { rows_[static_cast<std::size_t>(a)][word(b)] |= bit(b); }

  std::vector<Row> rows_ = {};
};

}  // namespace foreshard
