// The memory that cuDNN's fused attention needs beside its operands, and how much of it a run on a GPU uses. The executor chooses its
// attention by these rules, and predictions of its memory count what it may choose (docs/cuda.md).
#pragma once

#include <string>
#include <vector>

#include "core/op/operation.h"

namespace foreshard {

// How cuDNN adds up the gradient of the queries in a fixed order. None: it has no attention for this GPU. ByMap: through a map of
// S_q x S_kv numbers per head and sample. On a B200 it does without for long sequences: with 32,768 positions, not with 8192.
enum class FixedOrder : std::uint8_t { None, ByMap };
// Of a compute capability times ten: 80 (A100), 90 (H100), 100 (B200), 120 (RTX 5090); 0: unknown.
FixedOrder fixed_order_of(int capability);

struct AttentionSizes {
  std::int64_t samples = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0;
  std::int64_t dim = 0, value_dim = 0;  // elements of a query and key head, and of a value head
};
// `shapes`: those of the instruction or operator, as the header of ops::Attention says.
AttentionSizes attention_sizes(const ops::Attention& op, const std::vector<Shape>& shapes);

// What of this attention the library does not have on any GPU, in words ("cuDNN has no ..."): "sinks". Empty: nothing.
std::string beyond_library(const ops::Attention& op);

// An upper bound of the workspace of the backward, which is larger than that of the forward. With b samples, a query heads, S_q queries,
// S_kv keys and heads of d (values: v) elements, rounded as cuDNN rounds:
//   fixed order, by a map    2 b a S_q S_kv    dP in 16 bits; S_q rounded up to 64, S_kv to 128 (cudnn-frontend,
//                                              node/scaled_dot_product_flash_attention.h, dP workspace; forced on Hopper)
//   else                     8 b a S_q d       sums of dQ in fp32: one such array on Hopper, two on Ampere, Ada and RTX Blackwell
//   both                     4 b a S_q         row sums of dO times O in fp32
//                            2 b a S_kv (d+v)  dK and dV of each query head, with grouped queries
//                            1 MiB             alignment, random numbers
// Equal, but for the last row, to what cuDNN 9.19 answers on H200, A100 and RTX 5090 (tests/cuda/cudnn_plans_test.cpp asks it).
Bytes attention_workspace(const AttentionSizes& sizes, FixedOrder order, bool any_order);

// The largest workspace that a run uses on a GPU of this memory: a seventh of it, rounded down to a power of two (8 GiB of 80, 16 of 141).
// Rounded, because a GPU reports up to a fiftieth less than its datasheet says. Above it our own kernels need no workspace to speak of.
Bytes attention_workspace_limit(Bytes gpu_memory);

// The memory that a run may need for this attention, with and without --any-order: by the library where its workspace is within the limit,
// else by our own kernels, which keep 4 b a S_q bytes; nothing where the GPU has no such library. Shapes in 8 bits are those of the products
// around it: the attention itself is in 16.
Bytes attention_memory(const ops::Attention& op, const std::vector<Shape>& shapes, FixedOrder order, Bytes gpu_memory);

}  // namespace foreshard
