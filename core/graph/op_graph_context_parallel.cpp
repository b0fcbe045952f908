// Attention over the ranks of context parallelism, in its three forms:
//
//   all-gather   q, kv -> kv of all ranks -> attention
//   ring         kv goes round the ring, one block per step (Liu et al. 2023, Ring Attention); contexts are merged by their lse
//   all-to-all   qkv with all heads of some positions -> all positions of some heads -> attention -> back (Jacobs et al. 2023, Ulysses)
#include <utility>

#include "core/base/error.h"
#include "core/graph/op_graph_builder.h"

namespace foreshard {

namespace {

Dims times_sequence(Dims dims, std::int64_t times) {
  dims[1] *= times;
  return dims;
}

}  // namespace

int LayerBuilder::context_attention(const AttentionShape& shape, const std::vector<int>& qkv) {
  if (sharding_.cp == 1) return attention(shape, qkv, split_);
  switch (sharding_.context) {
    case ContextKind::AllGather: return attention(shape, {qkv[0], context_gather("kv_gather", qkv[1])}, split_);
    case ContextKind::Ring: return ring_attention(shape, qkv[0], qkv[1]);
    case ContextKind::AllToAll: return head_attention(shape, qkv[0]);
  }
  return -1;
}

int LayerBuilder::context_gather(const std::string& name, int x) {
  const Value in = at(x);
  const int full = value(in.name + "_all", times_sequence(in.dims, sharding_.cp), in.dtype);
  communicate(name,
              {.over = {DenseKind::Context},
               .forward = CollectiveKind::AllGather,
               .backward = CollectiveKind::ReduceScatter,
               .bytes = bytes(full)},
              {x}, {full})
      .always_recompute = true;
  return full;
}

// The next block is on its way while this one is computed, and in the backward the gradient of a block while that of the one before is.
int LayerBuilder::ring_attention(const AttentionShape& shape, int q, int kv) {
  const std::int64_t b = shape.batch, s = shape.queries, a = shape.heads, d = shape.dim;
  const Dims context = {b, s, a * shape.values()}, statistics = {b, a, s};
  ops::Attention what = attention_of(shape, split_);
  what.blocks = sharding_.cp;
  const std::vector<Shape> shapes = {{.dims = {b, s, a, d}, .dtype = gemm_type()},
                                     {.dims = {b, s, shape.kv_heads, d}, .dtype = gemm_type()}};
  const auto numbered = [](const char* name, int block) { return name + ("." + std::to_string(block)); };
  std::vector<int> merged;
  std::vector<std::size_t> blocks;
  for (int keys = kv; what.block < sharding_.cp; ++what.block) {
    int next = -1;
    if (what.block + 1 < sharding_.cp) {
      next = value(numbered("kv", what.block + 1), at(kv).dims, at(kv).dtype);
      communicate(numbered("kv_turn", what.block + 1),
                  {.over = {DenseKind::Context},
                   .forward = CollectiveKind::AllGather,
                   .backward = CollectiveKind::ReduceScatter,
                   .bytes = bytes(kv),
                   .ring_exchange = true},
                  {keys}, {next})
          .always_recompute = true;
    }
    Operator op = {.name = numbered("attention", what.block), .op = what, .inputs = {q, keys}, .module = "attention"};
    op.outputs = {value(numbered("context", what.block), context),
                  value(numbered("lse", what.block), statistics, statistics_type(), false)};
    op.shapes = shapes;
    std::vector<int> part = add(std::move(op)).outputs;
    blocks.push_back(layer_.operators.size() - 1);
    if (what.block > 0) {
      Operator merge = {.name = numbered("merge", what.block), .op = ops::MergeAttention{}, .module = "attention"};
      merge.inputs = {merged[0], merged[1], part[0], part[1]};
      merge.outputs = {value(numbered("merged", what.block), context),
                       value(numbered("merged_lse", what.block), statistics, statistics_type(), false)};
      merge.shapes = {{.dims = {b, s, a, shape.values()}, .dtype = gemm_type()}};
      part = add(std::move(merge)).outputs;
    }
    merged = std::move(part), keys = next;
  }
  for (const std::size_t block : blocks) {  // their backward reads the merged context and lse of all blocks
    Operator& op = layer_.operators[block];
    op.saved = {op.inputs[0], op.inputs[1], merged[0], merged[1]};
  }
  return merged[0];
}

int LayerBuilder::exchange_heads(const std::string& name, int x, const ops::HeadParts& what, const Dims& dims) {
  const Value in = at(x);
  const auto arrange = [&](int from, const Dims& to, bool join) {
    ops::HeadParts op = what;
    op.join = join;
    Operator arranged = {.name = name + (join ? "_join" : "_parts"), .op = op, .inputs = {from}, .module = "communication"};
    arranged.outputs = {value(name + (join ? "_joined" : "_parted"), to, in.dtype)};
    arranged.shapes = {{.dims = at(from).dims, .dtype = in.dtype}};
    return add(std::move(arranged)).outputs[0];
  };
  const int from = what.join ? x : arrange(x, in.dims, false);
  const int all = value(name + "_dealt", dims, in.dtype);
  communicate(name + "_all_to_all",
              {.over = {DenseKind::Context},
               .forward = CollectiveKind::AllToAll,
               .backward = CollectiveKind::AllToAll,
               .bytes = bytes(x)},
              {from}, {all});
  return what.join ? arrange(all, dims, true) : all;
}

int LayerBuilder::head_attention(const AttentionShape& shape, int qkv) {
  const int cp = sharding_.cp;
  const std::int64_t b = shape.batch, s = shape.queries, d = shape.dim;
  const ops::HeadParts parts = {.parts = cp, .heads = shape.heads, .kv_heads = shape.kv_heads, .dim = d};
  const std::int64_t width = (shape.heads + 2 * shape.kv_heads) * d;
  const int dealt = exchange_heads("qkv", qkv, parts, {b, s * cp, width / cp});
  AttentionShape whole = shape;
  whole.queries = whole.keys = s * cp, whole.heads = shape.heads / cp, whole.kv_heads = shape.kv_heads / cp;
  const int context = attention(whole, {dealt}, {.ranks = cp, .chunks = 0});
  return exchange_heads("context", context, {.parts = cp, .heads = shape.heads, .dim = d, .join = true},
                        {b, s, shape.heads * d});
}

}  // namespace foreshard
