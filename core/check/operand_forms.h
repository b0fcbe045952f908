// What the size laws of operands share (core/check/operand_sizes.h). Internal to core/check.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/check/operand_sizes.h"

namespace foreshard::operand_forms {

using Sizes = std::vector<std::int64_t>;

// Products stop at the largest number: a plan may state any sizes.
template <class... More>
std::int64_t times(std::int64_t first, More... more) {
  std::int64_t product = first;
  for (const std::int64_t factor : std::initializer_list<std::int64_t>{more...})
    if (__builtin_mul_overflow(product, factor, &product)) return INT64_MAX;
  return product;
}
inline std::int64_t product_of(const Sizes& dims) {
  std::int64_t all = 1;
  for (const std::int64_t dim : dims) all = times(all, dim);
  return all;
}

struct Found {  // a compute, and the elements of its operands
  Phase phase = Phase::Forward;
  const std::vector<Shape>& shapes;
  std::int64_t slices = 1;  // 1: all of each block
  const Sizes &reads, &writes;

  bool forward() const { return ops::is_forward(phase); }
  const Sizes& dims(std::size_t shape) const { return shapes[shape].dims; }
  std::int64_t all(std::size_t shape = 0) const { return product_of(dims(shape)); }
};

// Laws of attention and of heads: operand_sizes_attention.cpp.
OperandSizes sizes(const ops::Attention& op, const Found& at);
OperandSizes sizes(const ops::Scores& op, const Found& at);
OperandSizes sizes(const ops::WeightedValues& op, const Found& at);
OperandSizes sizes(const ops::Softmax& op, const Found& at);
OperandSizes sizes(const ops::MergeAttention& op, const Found& at);
OperandSizes sizes(const ops::HeadParts& op, const Found& at);
OperandSizes sizes(const ops::Rope& op, const Found& at);
OperandSizes sizes(const ops::HeadNorm& op, const Found& at);
OperandSizes sizes(const ops::LatentHeads& op, const Found& at);
OperandSizes sizes(const ops::TokenScores& op, const Found& at);
OperandSizes sizes(const ops::KeepTokens& op, const Found& at);
OperandSizes sizes(const ops::TakeRows& op, const Found& at);
OperandSizes sizes(const ops::PutRows& op, const Found& at);
// Laws of mixtures of experts: operand_sizes_experts.cpp.
OperandSizes sizes(const ops::Route& op, const Found& at);
OperandSizes sizes(const ops::Dispatch& op, const Found& at);
OperandSizes sizes(const ops::Combine& op, const Found& at);
OperandSizes sizes(const ops::SendOnce& op, const Found& at);
OperandSizes sizes(const ops::GroupedMatMul& op, const Found& at);
OperandSizes sizes(const ops::BalanceExperts& op, const Found& at);

}  // namespace foreshard::operand_forms
