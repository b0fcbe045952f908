// Sizes of the operands of attention, and of what stands around it: heads, positions, tokens that are kept (core/op/attention.h).
#include <algorithm>

#include "core/check/operand_forms.h"

namespace foreshard::operand_forms {

OperandSizes sizes(const ops::Attention& op, const Found& at) {
  const Sizes &q = at.dims(0), &k = at.dims(1);
  if (q[0] != k[0] || q[2] != op.heads || k[2] != op.kv_heads || q[3] != op.dim || k[3] != op.dim)
    return {.wrong = "heads or samples of the shapes that the settings do not have"};
  const bool sinks = op.sinks, apart = (at.forward() ? at.reads.size() : at.writes.size()) - (sinks ? 1 : 0) == 2;
  const std::int64_t keys = times(op.kv_heads, op.dim + op.values()), rows = times(q[0], q[1]);
  const std::int64_t query = times(rows, times(op.heads, op.dim) + (apart ? 0 : keys)), key = times(k[0], k[1], keys);
  const std::int64_t context = times(rows, op.heads, op.values()), lse = times(rows, op.heads);
  OperandSizes all;
  if (!at.forward()) all.reads.push_back(context);
  all.reads.push_back(query);
  if (apart) all.reads.push_back(key);
  if (at.forward()) {
    all.writes = {context, lse};
    if (sinks) all.reads.push_back(op.heads);
    return all;
  }
  all.reads.insert(all.reads.end(), {context, lse});
  all.writes = {query};
  if (apart) all.writes.push_back(key);
  if (sinks) all.reads.push_back(op.heads), all.writes.push_back(op.heads);
  return all;
}

namespace {

// Sizes of products of heads: maps, and operands of queries and of keys in one value or two.
struct HeadSizes {
  std::int64_t maps = 0, context = 0, both = 0, keys_alone = 0, keys_of_both = 0;
  HeadSizes(std::int64_t maps_of, std::int64_t s, std::int64_t t, std::int64_t dim, std::int64_t heads, std::int64_t kv_heads) {
    const std::int64_t b = maps_of / std::max<std::int64_t>(heads, 1), all = times(heads + 2 * kv_heads, dim);
    maps = times(maps_of, s, t), context = times(b, s, heads, dim), both = times(b, s, all);
    keys_alone = times(b, t, 2 * kv_heads, dim), keys_of_both = times(b, t, all);
  }
};
template <class Operator>
std::string heads_wrong(const Operator& op, std::int64_t maps, std::int64_t dim) {
  if (op.heads < 1 || op.kv_heads < 1 || op.kv_heads > op.heads || op.heads % op.kv_heads != 0 || maps % op.heads != 0)
    return "heads that do not divide the maps of its shape";
  return dim == op.dim ? "" : "heads of " + std::to_string(op.dim) + " elements, its shape of " + std::to_string(dim);
}
}  // namespace

OperandSizes sizes(const ops::Scores& op, const Found& at) {
  const Sizes& d = at.dims(0);
  if (std::string wrong = heads_wrong(op, d[0], d[3]); !wrong.empty()) return {.wrong = std::move(wrong)};
  const HeadSizes size(d[0], d[1], d[2], d[3], op.heads, op.kv_heads);
  const bool apart = at.forward() ? at.reads.size() > 1 : at.reads.size() > 2;
  Sizes operands = apart ? Sizes{size.context, size.keys_alone} : Sizes{size.both};
  if (at.forward()) return {.reads = operands, .writes = {size.maps}};
  OperandSizes all{.reads = operands, .writes = operands};
  all.reads.insert(all.reads.begin(), size.maps);
  return all;
}
OperandSizes sizes(const ops::WeightedValues& op, const Found& at) {
  const Sizes& d = at.dims(0);
  if (std::string wrong = heads_wrong(op, d[0], d[2]); !wrong.empty()) return {.wrong = std::move(wrong)};
  const HeadSizes size(d[0], d[1], d[3], d[2], op.heads, op.kv_heads);
  const std::size_t key = at.forward() ? 1 : 2;
  const bool apart = at.reads.size() > key && at.reads[key] == size.keys_alone;
  const std::int64_t keys = apart ? size.keys_alone : size.keys_of_both;
  if (at.forward()) return {.reads = {size.maps, keys}, .writes = {size.context}};
  return {.reads = {size.context, size.maps, keys}, .writes = {size.maps, keys}};
}
OperandSizes sizes(const ops::Softmax&, const Found& at) {
  const std::int64_t size = at.all();
  return at.forward() ? OperandSizes{.reads = {size}, .writes = {size}} : OperandSizes{.reads = {size, size}, .writes = {size}};
}
OperandSizes sizes(const ops::MergeAttention&, const Found& at) {
  const std::int64_t size = at.all(), rows = size / std::max<std::int64_t>(at.dims(0)[3], 1);
  return {.reads = {size, rows, size, rows}, .writes = {size, rows}};
}
OperandSizes sizes(const ops::HeadParts& op, const Found& at) {
  const std::int64_t width = times(op.heads + 2 * op.kv_heads, op.dim);
  if (op.parts < 1 || width < 1 || op.heads % op.parts != 0 || op.kv_heads % op.parts != 0 || at.all() % width != 0)
    return {.wrong = "heads that its parts or its shape do not divide"};
  return {.reads = {at.all()}, .writes = {at.all()}};
}
OperandSizes sizes(const ops::Rope& op, const Found& at) {
  const std::int64_t width = at.dims(0).back();
  if (op.dim < 2 || times(op.heads + op.kv_heads, op.dim) > width || width % op.dim != 0 || op.rotated_dim() > op.dim)
    return {.wrong = "heads that do not fit its rows"};
  return {.reads = {at.all()}, .writes = {at.all()}};
}
OperandSizes sizes(const ops::HeadNorm& op, const Found& at) {
  const std::int64_t width = at.dims(0)[2], rows = times(at.dims(0)[0], at.dims(0)[1]), values = times(op.kv_heads, op.dim);
  if (op.dim < 1 || times(op.heads + op.kv_heads, op.dim) != width) return {.wrong = "heads that do not fill its rows"};
  Sizes weights;
  for (const std::int64_t heads : {op.heads, op.kv_heads})
    if (heads > 0 && op.over != QkNorm::Unweighted)
      weights.push_back(op.over == QkNorm::AllHeads ? times(heads, op.dim) : op.dim);
  const std::int64_t in = times(rows, width), out = times(rows, width + values);
  OperandSizes all;
  if (at.forward()) {
    all = {.reads = {in}, .writes = {out}};
    if (values > 0) all.reads.push_back(times(rows, values));
  } else {
    all = {.reads = {out, in}, .writes = {in}};
    if (values > 0) all.writes.push_back(times(rows, values));
    if (at.phase == Phase::Backward) all.writes.insert(all.writes.end(), weights.begin(), weights.end());
  }
  all.reads.insert(all.reads.end(), weights.begin(), weights.end());
  return all;
}
OperandSizes sizes(const ops::LatentHeads& op, const Found& at) {
  const std::int64_t in = times(op.heads, op.plain + op.value), out = times(op.heads, op.plain + op.rotated + op.value);
  if (in < 1 || at.dims(0).back() != in) return {.wrong = "heads that do not fill its rows"};
  const std::int64_t rows = at.all() / in;
  const Sizes inputs = {at.all(), times(rows, op.rotated)}, outputs = {times(rows, out)};
  return at.forward() ? OperandSizes{.reads = inputs, .writes = outputs} : OperandSizes{.reads = outputs, .writes = inputs};
}
OperandSizes sizes(const ops::TokenScores&, const Found& at) {
  return {.reads = {at.all()}, .writes = {times(at.dims(0)[0], at.dims(0)[3])}};
}
OperandSizes sizes(const ops::KeepTokens& op, const Found& at) {
  const Sizes& d = at.dims(0);
  if (op.parts < 1 || d[1] % op.parts != 0 || d[2] % op.parts != 0)
    return {.wrong = "parts of a sequence that do not divide its tokens and those that are kept"};
  return {.reads = {times(d[0], d[1])}, .writes = {times(d[0], d[2])}};
}
static OperandSizes kept_sizes(bool takes, std::int64_t parts, const Found& at) {
  const Sizes& d = at.dims(0);
  const std::int64_t every = times(d[0], d[1], d[3]), kept = times(d[0], d[2], d[3]);
  const bool shrinks = takes == at.forward();
  return {.reads = {shrinks ? every : kept, times(d[0], d[2], parts)}, .writes = {shrinks ? kept : every}};
}
OperandSizes sizes(const ops::TakeRows& op, const Found& at) { return kept_sizes(true, op.parts, at); }
OperandSizes sizes(const ops::PutRows& op, const Found& at) { return kept_sizes(false, op.parts, at); }

}  // namespace foreshard::operand_forms
