// Sizes of the operators of a mixture of experts (core/op/experts.h), from their shapes and settings. Used by exec/host and exec/cuda_ops.
#pragma once

#include <cstdint>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

// Sizes of Dispatch and Combine: rows of tokens [sources, tokens, hidden], and a row for each choice (an expert that a token chose). dealt:
// expert e is on rank e mod `ranks`.
struct ChoiceRows {
  std::int64_t tokens = 0, hidden = 0, chosen = 0, experts = 0, ranks = 0, room = 0;
  std::int64_t sources = 1;  // ranks whose tokens these are, `tokens` of each
  bool dealt = false;

  // Index of an expert when experts are sorted by rank.
  std::int64_t place(std::int64_t expert) const { return dealt ? expert % ranks * (experts / ranks) + expert / ranks : expert; }
  std::int64_t choices() const { return tokens * chosen; }  // of one source
  std::int64_t size() const { return (sources > 1 ? sources : ranks) * room * hidden; }
};

// Sizes of SendOnce, which sends a token once to each part of the expert group that has one or more of its experts.
struct SentTokens {
  ops::SendOnce op = {};
  std::int64_t tokens = 0, hidden = 0, chosen = 0, experts = 0, parts = 0, room = 0;

  std::int64_t choices() const { return tokens * chosen; }
  std::int64_t rows() const { return parts * room; }
  std::int64_t ranks_of_part() const { return op.ranks / parts; }
  std::int64_t rank(std::int64_t expert) const { return op.dealt ? expert % op.ranks : expert / (experts / op.ranks); }
  std::int64_t part(std::int64_t expert) const { return rank(expert) / ranks_of_part(); }
  // Index of an expert among those of its part. They are assigned to the ranks of the part by the same rule (`dealt`) as in the whole
  // group.
  std::int64_t number(std::int64_t expert) const {
    if (!op.dealt) return expert % (experts / parts);
    return expert / op.ranks * ranks_of_part() + rank(expert) % ranks_of_part();
  }
};

// Sizes of GroupedMatMul: for each expert and each of its `parts` weights, the product of its rows [.., k] and the weight [k, columns].
struct GroupedProduct {
  std::int64_t experts = 0, n = 0, k = 0, parts = 1, sources = 0, room = 0;
  bool transposed = false;

  std::int64_t rows() const { return sources * room; }
  std::int64_t columns() const { return n / parts; }
  std::int64_t weight() const { return experts * columns() * k; }  // elements of the weights of a part
  // Strides in the weight of an expert: from one of the `k` elements, and from one column, to the next.
  std::int64_t by_k() const { return transposed ? columns() : 1; }
  std::int64_t by_column() const { return transposed ? 1 : k; }
};

// Operands of the backward of Dispatch, which reads: gradient of the rows, [x, weights,] places.
struct DispatchGradient {
  bool scaled = false;                                   // the rows were multiplied by their weights
  std::int64_t all = 0, choices = 0;                     // elements of x, and choices, of all sources
  std::size_t places() const { return scaled ? 3 : 1; }  // index of the operand `places`
};

// Operands of the backward of Combine, which reads: gradient of y, [rows,] places [, weights].
struct CombineGradient {
  bool plain = false;                                   // rows are summed without weights
  std::size_t places() const { return plain ? 1 : 2; }  // index of the operand `places`
};

// Throw Error for shapes and settings that do not fit each other.
ChoiceRows choice_rows(const Form& form);
DispatchGradient dispatch_gradient(const Form& form, const ChoiceRows& rows);
CombineGradient combine_gradient(const Form& form, const ChoiceRows& rows);
SentTokens sent_tokens(const Form& form);
GroupedProduct grouped_product(const Form& form);

}  // namespace foreshard::host
