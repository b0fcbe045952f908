// What the host kernels share: the form of an instruction, from which a maker builds a kernel, and the call that runs it.
// Used only by exec/host_*.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/host/host_ops.h"

namespace foreshard::host {

// An instruction as its maker sees it: sizes and types, no data.
struct Form {
  const Compute& what;
  std::span<const Operand> reads, writes;
  Operand factors = {};  // of a linear layer in 8 bits: what the plan gives it for them; empty: nothing

  template <class Operator>
  const Operator& as() const {
    return std::get<Operator>(what.op);
  }
  bool forward() const { return ops::is_forward(what.phase); }
  // Dimensions of shape `index`; there have to be `count` of them (0: any number). Throws Error.
  const std::vector<std::int64_t>& dims(std::size_t index, std::size_t count = 0) const;
  // Throws Error unless there is one operand per entry, with at least that many elements.
  void expect(const std::vector<std::int64_t>& read_sizes, const std::vector<std::int64_t>& write_sizes) const;
  [[noreturn]] void refuse(const std::string& found, const std::string& expected) const;
};

// Where the plan says where the factors of a linear layer in 8 bits lie, the last write is no result (core/op/eight_bit_factors.h).
bool has_factors(const Compute& what, std::span<const Operand> writes);

// One run. `in` and `out` point to the operands in the arithmetic type; null for integer operands, which are read through
// `reads` and `writes`. What accumulates finds the old value in `out`.
template <class T>
struct Call {
  std::span<const T* const> in;
  std::span<T* const> out;
  std::span<const Operand> reads, writes;
  T* scratch;
  const OpArguments& arguments;
};

template <class T>
struct Kernel {
  std::function<void(const Call<T>&)> run;
  std::int64_t scratch = 0;  // elements of T
  bool raw = false;          // reads and writes stored operands itself; `in` and `out` are not set
};

// Operands of int64.
inline const std::int64_t* integers(const Operand& operand) { return reinterpret_cast<const std::int64_t*>(operand.data); }
inline std::int64_t* integers_of(const Operand& operand) { return reinterpret_cast<std::int64_t*>(operand.data); }

inline std::int64_t size_of_dims(const std::vector<std::int64_t>& dims) {
  std::int64_t size = 1;
  for (const std::int64_t dim : dims) size *= dim;
  return size;
}

// Share of one row of a micro-batch in the mean over the step, for a loss with `rows` rows on each of `ranks` context-parallel ranks.
inline double loss_weight(const OpArguments& arguments, std::int64_t rows, int ranks) {
  const double positions = static_cast<double>(rows * ranks) / static_cast<double>(arguments.samples);
  return 1 / (positions * static_cast<double>(arguments.samples_of_step));
}

// Positions of `rows` rows of this rank; under sequence parallelism they are a part of what its context-parallel rank holds.
inline RowPositions held_rows(const SequenceSplit& split, std::int64_t rows, bool sequence_parallel,
                              const OpArguments& arguments) {
  if (!sequence_parallel) return split.rows_of(arguments.cp_rank, rows);
  return split.rows_of(arguments.cp_rank, rows * arguments.tp).from(rows * arguments.tp_rank);
}

// Number, within the model, of the first of `heads` heads of this rank.
inline std::int64_t first_head(const SequenceSplit& split, std::int64_t heads, const OpArguments& arguments) {
  return heads * (split.chunks == 0 ? arguments.tp_rank * split.ranks + arguments.cp_rank : arguments.tp_rank);
}

// Calls body(row, position, count) for stretches of at most `most` rows whose positions follow each other.
template <class F>
void for_each_stretch(const RowPositions& at, std::int64_t rows, std::int64_t most, F&& body) {
  for (std::int64_t row = 0; row < rows;) {
    const std::int64_t end = row < at.length ? std::min(rows, at.length) : rows, count = std::min(most, end - row);
    body(row, at.position(row), count);
    row += count;
  }
}

// Of embeddings. Throws Error.
void expect_weights_phase(const Form& form);

// Of a dynamic loss scale: doubled after `growth` steps without overflow, never below 2^least times the first scale.
struct OverflowRule {
  std::int64_t growth = 1;
  double least = 0;
};
OverflowRule overflow_rule(const Form& form);  // checks the operands

// out[c] += sum over rows of x[r, c].
template <class T>
void add_column_sums(const T* x, std::int64_t rows, std::int64_t columns, T* out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * columns;
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) out[c] += row[c];
  }
}

}  // namespace foreshard::host
