#include "core/plan/attention_memory.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"

namespace foreshard {

namespace {

constexpr std::int64_t kSlack = std::int64_t{1} << 20U;
constexpr std::int64_t kQueryTile = 64, kKeyTile = 128;  // of the map
constexpr std::int64_t kShareOfMemory = 7;
constexpr std::int64_t kLargestHead = 256, kHeadStep = 8;

std::int64_t in_tiles(std::int64_t rows, std::int64_t tile) { return (rows + tile - 1) / tile * tile; }

}  // namespace

FixedOrder fixed_order_of(int capability) { return capability < 80 ? FixedOrder::None : FixedOrder::ByMap; }

AttentionSizes attention_sizes(const ops::Attention& op, const std::vector<Shape>& shapes) {
  FS_ASSERT(shapes.size() >= 2 && shapes[0].dims.size() == 4 && shapes[1].dims.size() == 4);
  const auto &queries = shapes[0].dims, &keys = shapes[1].dims;
  return {.samples = queries[0],
          .heads = queries[2],
          .kv_heads = keys[2],
          .queries = queries[1],
          .keys = keys[1],
          .dim = queries[3],
          .value_dim = op.values()};
}

std::string beyond_library(const ops::Attention& op) {
  if (op.causal && op.split.parts() > 1) return "causal map of positions dealt out over context-parallel ranks";
  if (op.chunk > 0) return "chunks of positions";
  if (op.sinks) return "sinks";
  if (op.score_cap > 0) return "caps of scores";
  for (const std::int64_t dim : {op.dim, op.values()})
    if (dim % kHeadStep != 0 || dim > kLargestHead)
      return "heads of " + std::to_string(dim) + " elements (cuDNN: multiples of 8 up to 256)";
  return "";
}

Bytes attention_workspace(const AttentionSizes& at, FixedOrder order, bool any_order) {
  const std::int64_t maps = at.samples * at.heads;
  std::int64_t bytes = 4 * maps * at.queries + kSlack;
  if (at.kv_heads < at.heads) bytes += 2 * maps * at.keys * (at.dim + at.value_dim);
  if (order == FixedOrder::ByMap && !any_order)
    bytes += 2 * maps * in_tiles(at.queries, kQueryTile) * in_tiles(at.keys, kKeyTile);
  else
    bytes += 8 * maps * at.queries * at.dim;
  return {bytes};
}

Bytes attention_workspace_limit(Bytes gpu_memory) {
  const auto share = static_cast<std::uint64_t>(std::max<std::int64_t>(gpu_memory.value / kShareOfMemory, 0));
  return {static_cast<std::int64_t>(std::bit_floor(share))};
}

Bytes attention_memory(const ops::Attention& op, const std::vector<Shape>& shapes, FixedOrder order, Bytes gpu_memory) {
  if (order == FixedOrder::None) return {};
  const AttentionSizes sizes = attention_sizes(op, shapes);
  Bytes most = {4 * sizes.samples * sizes.heads * sizes.queries};
  const DType dtype = shapes[0].dtype;
  const bool wide = dtype == DType::F32 || dtype == DType::TF32 || dtype == DType::F64;
  if (wide || !beyond_library(op).empty()) return most;
  const Bytes limit = attention_workspace_limit(gpu_memory);
  for (const bool any_order : {false, true}) {
    const Bytes bound = attention_workspace(sizes, order, any_order);
    if (bound.value - kSlack <= limit.value) most = std::max(most, std::min(bound, limit));
  }
  return most;
}

}  // namespace foreshard
