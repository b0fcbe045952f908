// An attention instruction as its kernels see it: read by gpu_attention.cpp, which launches our own, and gpu_attention_library.cpp, which calls
// cuDNN's.
#pragma once

#include <cmath>

#include "exec/cuda_ops/gpu_kernel.h"
#include "exec/host/host_dropout.h"
#include "exec/host/host_heads.h"

namespace foreshard::gpu {

struct AttentionForm {
  host::HeadLayout at = {};
  bool causal = false, drops = false, accumulate = false;
  host::DropRule drop = {};
  ops::Attention op = {};

  std::int64_t all_queries() const { return at.queries * op.split.parts(); }  // of the whole sequence
  std::int64_t all_keys() const { return at.keys * op.blocks; }

  std::size_t key() const { return at.apart ? 1 : 0; }  // index of the operand of keys and values
  float scale() const { return static_cast<float>(op.scale > 0 ? op.scale : 1 / std::sqrt(static_cast<double>(at.dim))); }
  std::int64_t context_size() const { return at.samples * at.queries * at.heads * at.values(); }
  std::int64_t lse_size() const { return at.samples * at.heads * at.queries; }
};

// The elements of an array from `at` on.
inline View part(View array, DType dtype, std::int64_t at) {
  array.data = static_cast<std::byte*>(array.data) + at * size_of(dtype).value;
  array.elements -= at;
  return array;
}
inline View keys_of(const AttentionForm& form, const Operand& operand, bool write) {
  return part(write ? writes(operand) : reads(operand), operand.dtype, form.at.key_at(0, 0));
}
inline View values_of(const AttentionForm& form, const Operand& operand, bool write) {
  return part(write ? writes(operand) : reads(operand), operand.dtype, form.at.value_at(0, 0));
}

// The operands that have rows of heads: all but the lse and the sinks.
inline std::vector<Operand> head_rows(const host::Form& form, const AttentionForm& attention) {
  const bool forward = form.forward();
  const std::span<const Operand> in = form.reads.first(attention.key() + (forward ? 1 : 3)),
                                 out = form.writes.first(forward ? 1 : attention.key() + 1);
  std::vector<Operand> rows(in.begin(), in.end());
  rows.insert(rows.end(), out.begin(), out.end());
  return rows;
}

// What the library answers for an attention.
struct LibraryPlan {
  AttentionCall call = {};  // of this instruction, without addresses
  Bytes workspace = {};
  std::string refusal = {};  // why it is not used; empty: it is
};
// Forward and backward are computed by the same: by the library if it has both, and neither needs a larger workspace than
// Libraries::attention_limit. So a forward asks for the backward, too. What only the other instruction shows (an operand that is not aligned, a
// gradient that is added to another) is for the caller, who knows both (CudaDevice).
LibraryPlan by_library(const host::Form& form, const AttentionForm& attention, const Libraries& libraries);
Kernel library_kernel(const host::Form& form, const AttentionForm& attention, const LibraryPlan& plan);

}  // namespace foreshard::gpu
