// Where the heads of queries, keys and values lie in the rows of an attention operand. Used by exec/host and exec/cuda_ops.
#pragma once

#include <cstdint>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

// Rows are ordered [position, sample]. In one operand, each row is [query heads | key heads | value heads]; if the operands are
// `apart`, one has rows of query heads and the other rows of [key heads | value heads]. All sizes, strides and places are counted in
// elements.
struct HeadLayout {
  // queries, keys: positions of a sample; heads: query heads; kv_heads: key heads, as many as value heads; dim: of a query or key head.
  std::int64_t samples = 1, queries = 0, keys = 0, heads = 0, kv_heads = 0, dim = 0;
  bool apart = false;
  std::int64_t value_dim = 0;  // size of a value head; 0: dim

  std::int64_t values() const { return value_dim > 0 ? value_dim : dim; }
  std::int64_t query_width() const { return heads * dim + (apart ? 0 : kv_heads * (dim + values())); }
  std::int64_t key_width() const { return apart ? kv_heads * (dim + values()) : query_width(); }
  std::int64_t query_size() const { return samples * queries * query_width(); }
  std::int64_t key_size() const { return samples * keys * key_width(); }
  // Distance from one position of a sample to the next, in the query, key-value and output operand.
  std::int64_t query_stride() const { return samples * query_width(); }
  std::int64_t key_stride() const { return samples * key_width(); }
  std::int64_t context_stride() const { return samples * heads * values(); }
  // Where the vector of query head `head` at position 0 begins; for keys and values, that of the key-value head that this query head uses.
  std::int64_t query_at(std::int64_t sample, std::int64_t head) const { return sample * query_width() + head * dim; }
  std::int64_t key_at(std::int64_t sample, std::int64_t head) const {
    return sample * key_width() + ((apart ? 0 : heads) + kv_of(head)) * dim;
  }
  std::int64_t value_at(std::int64_t sample, std::int64_t head) const {
    return sample * key_width() + ((apart ? 0 : heads) + kv_heads) * dim + kv_of(head) * values();
  }
  std::int64_t context_at(std::int64_t sample, std::int64_t head) const { return (sample * heads + head) * values(); }
  std::int64_t kv_of(std::int64_t head) const { return head * kv_heads / heads; }
};

// Number of samples of an operator on attention maps, from its first shape {samples * heads, ...}. Throws Error if that does not divide.
std::int64_t samples_of(const Form& form);
// The layout of an operator that has heads. Throws Error unless kv_heads divides heads.
HeadLayout head_layout(const Form& form, std::int64_t samples, std::int64_t queries, std::int64_t keys, bool apart);

}  // namespace foreshard::host
