// Sizes of the operators of a mixture of experts (core/op/experts.h), from their shapes and settings. Used by exec/host and exec/cuda_ops.
#pragma once

#include <cstdint>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

// Of Dispatch and Combine: rows of tokens [sources, tokens, hidden] and rows of choices.
struct ChoiceRows {
  std::int64_t tokens = 0, hidden = 0, chosen = 0, experts = 0, ranks = 0, room = 0;
  std::int64_t sources = 1;  // ranks whose tokens these are, `tokens` of each
  bool dealt = false;

  // The place of an expert among all, those of one rank one after the other.
  std::int64_t place(std::int64_t expert) const { return dealt ? expert % ranks * (experts / ranks) + expert / ranks : expert; }
  std::int64_t choices() const { return tokens * chosen; }  // of one source
  std::int64_t size() const { return (sources > 1 ? sources : ranks) * room * hidden; }
};

// Of SendOnce: tokens that go once to each part of the expert group.
struct SentTokens {
  ops::SendOnce op = {};
  std::int64_t tokens = 0, hidden = 0, chosen = 0, experts = 0, parts = 0, room = 0;

  std::int64_t choices() const { return tokens * chosen; }
  std::int64_t rows() const { return parts * room; }
  std::int64_t ranks_of_part() const { return op.ranks / parts; }
  std::int64_t rank(std::int64_t expert) const { return op.dealt ? expert % op.ranks : expert / (experts / op.ranks); }
  std::int64_t part(std::int64_t expert) const { return rank(expert) / ranks_of_part(); }
  // The number of an expert among those of its part, where they lie on the ranks of the part as all do on those of the group.
  std::int64_t number(std::int64_t expert) const {
    if (!op.dealt) return expert % (experts / parts);
    return expert / op.ranks * ranks_of_part() + rank(expert) % ranks_of_part();
  }
};

// Of GroupedMatMul: per expert and part a product of its rows of `k` elements and a weight, to `columns` elements.
struct GroupedProduct {
  std::int64_t experts = 0, n = 0, k = 0, parts = 1, sources = 0, room = 0;
  bool transposed = false;

  std::int64_t rows() const { return sources * room; }
  std::int64_t columns() const { return n / parts; }
  std::int64_t weight() const { return experts * columns() * k; }  // elements of the weights of a part
  // Steps in the weight of an expert from one of the `k` elements, and from one of the columns, to the next.
  std::int64_t by_k() const { return transposed ? columns() : 1; }
  std::int64_t by_column() const { return transposed ? 1 : k; }
};

// Of Dispatch in the backward, whose reads are: gradient of the rows, [x, weights,] places.
struct DispatchGradient {
  bool scaled = false;                                   // the rows were multiplied by their weights
  std::int64_t all = 0, choices = 0;                     // elements of x, and choices, of all sources
  std::size_t places() const { return scaled ? 3 : 1; }  // operand with the row of each choice
};

// Of Combine in the backward, whose reads are: gradient of y, [rows,] places [, weights].
struct CombineGradient {
  bool plain = false;                                   // rows are summed without weights
  std::size_t places() const { return plain ? 1 : 2; }  // operand with the row of each choice
};

// Throw Error for shapes and settings that do not fit each other.
ChoiceRows choice_rows(const Form& form);
DispatchGradient dispatch_gradient(const Form& form, const ChoiceRows& rows);
CombineGradient combine_gradient(const Form& form, const ChoiceRows& rows);
SentTokens sent_tokens(const Form& form);
GroupedProduct grouped_product(const Form& form);

}  // namespace foreshard::host
