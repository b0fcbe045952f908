// What the host kernels share. A maker (a function per operator) builds a Kernel from the Form of an instruction, once; the kernel is then
// run with a Call, many times. Used by exec/host and exec/cuda_ops.
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

// An instruction as its maker sees it: the sizes and types of its operands, not their data.
struct Form {
  const Compute& what;
  std::span<const Operand> reads, writes;
  Operand factors = {};  // memory of the plan for the two rounded factors of an 8-bit linear layer; no data: none

  template <class Operator>
  const Operator& as() const {
    return std::get<Operator>(what.op);
  }
  bool forward() const { return ops::is_forward(what.phase); }
  // Dimensions of shape `index`. Throws Error unless there are `count` of them (0: any number), all positive.
  const std::vector<std::int64_t>& dims(std::size_t index, std::size_t count = 0) const;
  // Throws Error unless there is one operand per entry, with at least that many elements.
  void expect(const std::vector<std::int64_t>& read_sizes, const std::vector<std::int64_t>& write_sizes) const;
  [[noreturn]] void refuse(const std::string& found,
                           const std::string& expected) const;  // throws Error that names the operator
};

// Whether the last write of an 8-bit linear layer is not a result but scratch memory for its two rounded factors
// (core/op/eight_bit_factors.h).
bool has_factors(const Compute& what, std::span<const Operand> writes);

// The arguments of one run of a kernel. `in` and `out` point to the operands, converted to the arithmetic type T. They are null for integer
// operands, which the kernel accesses through `reads` and `writes`. A kernel that accumulates finds the old value in `out`.
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
  std::int64_t scratch = 0;  // elements of T that it needs in Call::scratch
  bool raw = false;          // it reads and writes the stored operands itself; `in` and `out` are not set
};

// The data of an int64 operand.
inline const std::int64_t* integers(const Operand& operand) { return reinterpret_cast<const std::int64_t*>(operand.data); }
inline std::int64_t* integers_of(const Operand& operand) { return reinterpret_cast<std::int64_t*>(operand.data); }

inline std::int64_t size_of_dims(const std::vector<std::int64_t>& dims) {
  std::int64_t size = 1;
  for (const std::int64_t dim : dims) size *= dim;
  return size;
}

// The weight of one row of a micro-batch in the mean loss of the training step: 1 / (all rows of the step). `rows`: rows of the loss on
// each of `ranks` context-parallel ranks.
inline double loss_weight(const OpArguments& arguments, std::int64_t rows, int ranks) {
  const double positions = static_cast<double>(rows * ranks) / static_cast<double>(arguments.samples);
  return 1 / (positions * static_cast<double>(arguments.samples_of_step));
}

// Sequence positions of this rank's `rows` rows (per sample). With sequence parallelism, the tensor-parallel ranks share the positions of
// their context-parallel rank, and each holds an equal part.
inline RowPositions held_rows(const SequenceSplit& split, std::int64_t rows, bool sequence_parallel,
                              const OpArguments& arguments) {
  if (!sequence_parallel) return split.rows_of(arguments.cp_rank, rows);
  return split.rows_of(arguments.cp_rank, rows * arguments.tp).from(rows * arguments.tp_rank);
}

// Index in the whole model of this rank's first head; each rank has `heads` heads.
inline std::int64_t first_head(const SequenceSplit& split, std::int64_t heads, const OpArguments& arguments) {
  return heads * (split.chunks == 0 ? arguments.tp_rank * split.ranks + arguments.cp_rank : arguments.tp_rank);
}

// Calls body(row, position, count) for stretches of at most `most` rows with consecutive positions; `row` is the first row of the stretch,
// `position` its position.
template <class F>
void for_each_stretch(const RowPositions& at, std::int64_t rows, std::int64_t most, F&& body) {
  for (std::int64_t row = 0; row < rows;) {
    const std::int64_t end = row < at.length ? std::min(rows, at.length) : rows, count = std::min(most, end - row);
    body(row, at.position(row), count);
    row += count;
  }
}

// Which token belongs to each row [position, sample] of a micro-batch: the one `ahead` positions after the row's; with `label` the label of
// the row's sample.
struct TokenRows {
  std::int64_t rows = 0, vocab = 0;
  SequenceSplit split = {};
  std::int64_t ahead = 0;
  bool label = false;
};
// Writes the tokens of the micro-batch to out[rows].
void read_tokens(const OpArguments& arguments, const TokenRows& tokens, std::int64_t* out);

// Throws Error unless the phase is forward, recompute or weight gradient: the phases of an embedding.
void expect_weights_phase(const Form& form);

// How a dynamic loss scale changes: it doubles after `growth` steps without overflow, and never falls below 2^least times the first scale.
struct OverflowRule {
  std::int64_t growth = 1;
  double least = 0;
};
OverflowRule overflow_rule(const Form& form);  // also checks the operands; throws Error

// y = factor x, or y += factor x with `add`.
template <class T>
void scale_into(const T* x, T factor, std::int64_t size, bool add, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < size; ++i) y[i] = (add ? y[i] : T(0)) + factor * x[i];
}

// out[c] += sum over rows r of x[r, c].
template <class T>
void add_column_sums(const T* x, std::int64_t rows, std::int64_t columns, T* out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * columns;
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) out[c] += row[c];
  }
}

}  // namespace foreshard::host
