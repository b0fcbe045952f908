// Kernels that context parallelism adds to attention: combining results over different keys, and rearranging heads for an all-to-all.
// Reference: exec/host/host_context_parallel.cpp.
#pragma once

#include "exec/cuda/attention_args.h"
#include "exec/cuda/kernels/words.h"

namespace foreshard::gpu {

// A warp per query and head: merged = sum over the two parts of context * e^(its lse - merged lse). Reads 4 bytes and writes 2 per element
// in bf16; bound by memory.
GPU_KERNEL merge_attention(const MergeArgs a) {
  const std::int64_t n = block() * warps() + warp();
  if (n >= a.samples * a.heads * a.queries) return;
  const std::int64_t sample = n / (a.heads * a.queries), head = n / a.queries % a.heads, query = n % a.queries;
  const std::int64_t at = ((query * a.samples + sample) * a.heads + head) * a.dim;
  const float first = load(a.lse, n), second = load(a.other_lse, n), most = fmaxf(first, second);
  const float lse = most + logf(expf(first - most) + expf(second - most)), x = expf(first - lse), y = expf(second - lse);
  for (std::int64_t i = lane(); i < a.dim; i += kWarp)
    store(a.merged, at + i, x * load(a.context, at + i) + y * load(a.other, at + i));
  if (lane() == 0) store(a.merged_lse, n, lse);
}

// A thread per element of the rows with all heads. Reads 2 bytes and writes 2 per element in bf16; bound by memory.
GPU_KERNEL split_heads(const HeadPartsArgs a) {
  const std::int64_t width = (a.heads + 2 * a.kv_heads) * a.dim, of_part = width / a.parts;
  for (std::int64_t i = flat_thread(); i < a.rows * width; i += flat_threads()) {
    const std::int64_t row = i / width, column = i - row * width;
    const std::int64_t keys = a.heads * a.dim, values = keys + a.kv_heads * a.dim;
    const std::int64_t begin = column < keys ? 0 : column < values ? keys : values;
    const std::int64_t count = (column < keys ? a.heads : a.kv_heads) * a.dim / a.parts, part = (column - begin) / count;
    const std::int64_t apart = (part * a.rows + row) * of_part + begin / a.parts + (column - begin - part * count);
    const std::int64_t from = a.join ? apart : i, to = a.join ? i : apart;
    store(a.y, to, old_value(a.accumulate, a.y, to) + load(a.x, from));
  }
}

}  // namespace foreshard::gpu
