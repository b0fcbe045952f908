// Attention in one operator that never holds a whole map (Dao et al. 2022): blocks of queries against all keys they may see.
// The forward keeps the logarithm of each row's sum of exponentials; the backward makes the probabilities from it again.
#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/arithmetic/host_blas.h"
#include "exec/arithmetic/host_math.h"
#include "exec/host/host_dropout.h"
#include "exec/host/host_heads.h"

namespace foreshard::host {

namespace {

constexpr std::int64_t kBlock = 64;  // queries at a time: their scores stay in cache

struct Flash {
  HeadLayout at = {};
  bool causal = false, drops = false;
  DropRule drop = {};
  double scale = 1;
  ops::Attention op = {};
  RowPositions queries = {}, keys = {};  // known when it runs

  std::int64_t context_size() const { return at.samples * at.queries * at.heads * at.values(); }
  std::int64_t lse_size() const { return at.samples * at.heads * at.queries; }
  // Keys that a query may see: the first ones, for they are sorted by position.
  std::int64_t visible(std::int64_t query) const { return causal ? keys.below(queries.position(query) + 1, at.keys) : at.keys; }
  // ... but for those before its window or chunk.
  std::int64_t hidden(std::int64_t query) const {
    const std::int64_t first = op.first_key(queries.position(query));
    return first > 0 ? keys.below(first, at.keys) : 0;
  }
  std::int64_t maps() const { return caps() ? 4 : 3; }  // of a block, in the backward
  bool caps() const { return op.score_cap > 0; }
  // Keys come one rank after the other: not in the order of their positions.
  bool sorts() const { return op.split.chunks > 1 && op.blocks == 1; }
  std::int64_t key_positions() const { return at.keys * op.blocks; }  // of the sequence
  std::int64_t query_positions() const { return at.queries * op.split.parts(); }
  Flash of_rank(int cp_rank) const {
    Flash now = *this;
    const int ranks = op.split.ranks;
    now.queries = op.split.rows_of(cp_rank, at.queries);
    if (op.blocks > 1) now.keys = op.split.rows_of((cp_rank - op.block + ranks) % ranks, at.keys);
    return now;
  }
};

// Rows of keys and values, all samples at once, from gathered order into that of their positions, or what they hold added back.
template <class T>
const T* sorted_keys(const Flash& flash, const T* k, T* sorted) {
  const std::int64_t row = flash.at.key_stride(), of_rank = flash.at.keys / flash.op.split.ranks;
  for (std::int64_t p = 0; p < flash.at.keys; ++p)
    std::copy_n(k + flash.op.split.gathered_row(p, of_rank) * row, row, sorted + p * row);
  return sorted;
}
template <class T>
void add_sorted(const Flash& flash, const T* sorted, T* k) {
  const std::int64_t row = flash.at.key_stride(), of_rank = flash.at.keys / flash.op.split.ranks;
  for (std::int64_t p = 0; p < flash.at.keys; ++p)
    add_column_sums(sorted + p * row, 1, row, k + flash.op.split.gathered_row(p, of_rank) * row);
}

// One block of queries of one head.
struct Tile {
  std::int64_t sample = 0, head = 0, first = 0, rows = 0, keys = 0;  // keys: what the last of the rows may see
};

template <class F>
void for_each_tile(const Flash& flash, F&& body) {
  const HeadLayout& at = flash.at;
  for (std::int64_t sample = 0; sample < at.samples; ++sample)
    for (std::int64_t head = 0; head < at.heads; ++head)
      for (std::int64_t first = 0; first < at.queries; first += kBlock) {
        const std::int64_t rows = std::min(kBlock, at.queries - first);
        body(Tile{sample, head, first, rows, flash.visible(first + rows - 1)});
      }
}

template <class T>
void make_scores_of(const Flash& flash, const Tile& tile, const T* q, const T* k, T* scores) {
  const HeadLayout& at = flash.at;
  multiply({.m = tile.rows,
            .n = tile.keys,
            .k = at.dim,
            .a = q + at.query_at(tile.sample, tile.head) + tile.first * at.query_stride(),
            .lda = at.query_stride(),
            .b = k + at.key_at(tile.sample, tile.head),
            .ldb = at.key_stride(),
            .transpose_b = true,
            .c = scores,
            .ldc = tile.keys,
            .alpha = static_cast<T>(flash.scale)});
  if (!flash.caps()) return;
  const T cap = static_cast<T>(flash.op.score_cap), inverse = 1 / cap;
  for (std::int64_t i = 0; i < tile.rows * tile.keys; ++i) scores[i] = cap * std::tanh(scores[i] * inverse);
}

// Multiplies row `row` of the tile's map by keep / (1 - p).
template <class T>
void drop_row(const Flash& flash, const Tile& tile, std::int64_t row, const OpArguments& arguments, T* map) {
  const std::int64_t head = first_head(flash.op.split, flash.at.heads, arguments) + tile.head,
                     query = flash.queries.position(tile.first + row);
  const std::int64_t first = (head * flash.query_positions() + query) * flash.key_positions();
  const std::uint64_t stream = drop_stream(arguments, flash.drop, arguments.first_sample + tile.sample);
  const T scale = static_cast<T>(flash.drop.scale);
  constexpr std::int64_t chunk = 256;
  std::uint8_t keep[chunk];
  T* values = map + row * tile.keys;
  for_each_stretch(flash.keys, tile.keys, chunk, [&](std::int64_t key, std::int64_t position, std::int64_t count) {
    fill_mask(arguments.seed, stream, first + position, count, flash.drop.threshold, keep);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) values[key + i] *= keep[i] ? scale : T(0);
  });
}

// Scores -> probabilities in place; returns the row's log of the sum of exponentials, with that of the head's sink.
template <class T>
T normalise_row(T* x, std::int64_t visible, std::int64_t columns, const T* sink) {
  if (visible == 0) {  // a row that sees none of this block of keys
    std::fill_n(x, columns, T(0));
    return -std::numeric_limits<T>::infinity();
  }
  T largest = sink && *sink > x[0] ? *sink : x[0], sum = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t c = 0; c < visible; ++c) largest = x[c] > largest ? x[c] : largest;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < visible; ++c) {
    const T e = fast_exp(x[c] - largest);
    x[c] = e;
    sum += e;
  }
  if (sink) sum += fast_exp(*sink - largest);
  const T inverse = T(1) / sum;
#pragma omp simd
  for (std::int64_t c = 0; c < visible; ++c) x[c] *= inverse;
  std::fill(x + visible, x + columns, T(0));
  return largest + std::log(sum);
}

template <class T>
void forward_tile(const Flash& flash, const Tile& tile, const T* q, const T* k, T* context, T* lse, const Call<T>& call) {
  const T* sink = flash.op.sinks ? call.in[flash.at.apart ? 2 : 1] + tile.head : nullptr;
  const HeadLayout& at = flash.at;
  T* map = call.scratch;
  if (tile.keys > 0) make_scores_of(flash, tile, q, k, map);
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const std::int64_t query = tile.first + row, hidden = flash.hidden(query);
    std::fill_n(map + row * tile.keys, hidden, T(0));
    lse[(tile.sample * at.heads + tile.head) * at.queries + query] =
        normalise_row(map + row * tile.keys + hidden, flash.visible(query) - hidden, tile.keys - hidden, sink);
    if (flash.drops) drop_row(flash, tile, row, call.arguments, map);
  }
  multiply({.m = tile.rows,
            .n = at.values(),
            .k = tile.keys,
            .a = static_cast<const T*>(map),
            .lda = tile.keys,
            .b = k + at.value_at(tile.sample, tile.head),
            .ldb = at.key_stride(),
            .c = context + at.context_at(tile.sample, tile.head) + tile.first * at.context_stride(),
            .ldc = at.context_stride()});
}

// probabilities = exp(scores - lse) and, in `dropped`, what multiplied the values; in `slopes`, d capped score / d score.
template <class T>
void probabilities_again(const Flash& flash, const Tile& tile, const T* lse, const OpArguments& arguments, T* map, T* dropped,
                         T* slopes) {
  if (flash.caps()) {
    const T inverse = static_cast<T>(1 / flash.op.score_cap);
    for (std::int64_t i = 0; i < tile.rows * tile.keys; ++i) slopes[i] = 1 - map[i] * inverse * (map[i] * inverse);
  }
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const std::int64_t query = tile.first + row, visible = flash.visible(query), hidden = flash.hidden(query);
    const T shift = lse[(tile.sample * flash.at.heads + tile.head) * flash.at.queries + query];
    T* p = map + row * tile.keys;
#pragma omp simd
    for (std::int64_t c = hidden; c < visible; ++c) p[c] = fast_exp(p[c] - shift);
    std::fill(p, p + hidden, T(0));
    std::fill(p + visible, p + tile.keys, T(0));
  }
  std::copy_n(map, tile.rows * tile.keys, dropped);
  if (!flash.drops) return;
  for (std::int64_t row = 0; row < tile.rows; ++row) drop_row(flash, tile, row, arguments, dropped);
}

// ds = scale p (dp - sum(context dcontext)), where dp is the gradient after dropout (Dao et al. 2022, appendix B.2). Returns that sum.
template <class T>
T scores_grad_row(const Flash& flash, const T* context, const T* dcontext, const T* p, std::int64_t columns, T* dp) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < flash.at.values(); ++i) sum += context[i] * dcontext[i];
  const T scale = static_cast<T>(flash.scale);
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) dp[c] = scale * p[c] * (dp[c] - sum);
  return sum;
}

template <class T>
struct FlashGrad {
  const T *dcontext, *q, *k, *context, *lse, *sinks;
  T *dq, *dk, *dsinks;
};

template <class T>
void backward_tile(const Flash& flash, const Tile& tile, const FlashGrad<T>& g, const Call<T>& call) {
  const HeadLayout& at = flash.at;
  T *map = call.scratch, *dropped = map + kBlock * at.keys, *dmap = dropped + kBlock * at.keys,
    *slopes = dmap + kBlock * at.keys;
  const std::int64_t context_at = at.context_at(tile.sample, tile.head) + tile.first * at.context_stride();
  const std::int64_t query_at = at.query_at(tile.sample, tile.head) + tile.first * at.query_stride();
  const std::int64_t key_at = at.key_at(tile.sample, tile.head), value_at = at.value_at(tile.sample, tile.head);
  make_scores_of(flash, tile, g.q, g.k, map);
  probabilities_again(flash, tile, g.lse, call.arguments, map, dropped, slopes);
  // dv += dropped^T dcontext
  multiply({.m = tile.keys,
            .n = at.values(),
            .k = tile.rows,
            .a = static_cast<const T*>(dropped),
            .lda = tile.keys,
            .transpose_a = true,
            .b = g.dcontext + context_at,
            .ldb = at.context_stride(),
            .c = g.dk + value_at,
            .ldc = at.key_stride(),
            .beta = T(1)});
  // dp = dcontext v^T
  multiply({.m = tile.rows,
            .n = tile.keys,
            .k = at.values(),
            .a = g.dcontext + context_at,
            .lda = at.context_stride(),
            .b = g.k + value_at,
            .ldb = at.key_stride(),
            .transpose_b = true,
            .c = dmap,
            .ldc = tile.keys});
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    if (flash.drops) drop_row(flash, tile, row, call.arguments, dmap);
    const T sum = scores_grad_row(flash, g.context + context_at + row * at.context_stride(),
                                  g.dcontext + context_at + row * at.context_stride(), map + row * tile.keys, tile.keys,
                                  dmap + row * tile.keys);
    if (!g.sinks) continue;  // a sink is a score with the value 0: dp = 0
    const T lse = g.lse[(tile.sample * at.heads + tile.head) * at.queries + tile.first + row];
    g.dsinks[tile.head] -= fast_exp(g.sinks[tile.head] - lse) * sum;
  }
  if (flash.caps())
    for (std::int64_t i = 0; i < tile.rows * tile.keys; ++i) dmap[i] *= slopes[i];
  multiply({.m = tile.rows,
            .n = at.dim,
            .k = tile.keys,
            .a = static_cast<const T*>(dmap),
            .lda = tile.keys,
            .b = g.k + key_at,
            .ldb = at.key_stride(),
            .c = g.dq + query_at,
            .ldc = at.query_stride(),
            .beta = T(1)});
  multiply({.m = tile.keys,
            .n = at.dim,
            .k = tile.rows,
            .a = static_cast<const T*>(dmap),
            .lda = tile.keys,
            .transpose_a = true,
            .b = g.q + query_at,
            .ldb = at.query_stride(),
            .c = g.dk + key_at,
            .ldc = at.key_stride(),
            .beta = T(1)});
}

template <class T>
Kernel<T> flash_backward(const Form& form, const Flash& flash) {
  const HeadLayout& at = flash.at;
  std::vector<std::int64_t> reads = {flash.context_size(), at.query_size()}, writes = {at.query_size()};
  if (at.apart) reads.push_back(at.key_size()), writes.push_back(at.key_size());
  reads.insert(reads.end(), {flash.context_size(), flash.lse_size()});
  const bool sinks = flash.op.sinks;
  if (sinks) reads.push_back(at.heads), writes.push_back(at.heads);
  form.expect(reads, writes);
  const bool accumulate = form.what.accumulate, add_sinks = form.what.accumulate_weights;
  return {.run =
              [flash, accumulate, sinks, add_sinks](const Call<T>& call) {
                const HeadLayout& at = flash.at;
                const std::size_t key = at.apart ? 1 : 0;
                FlashGrad<T> g{.dcontext = call.in[0],
                               .q = call.in[1],
                               .k = call.in[1 + key],
                               .context = call.in[2 + key],
                               .lse = call.in[3 + key],
                               .sinks = sinks ? call.in[4 + key] : nullptr,
                               .dq = call.out[0],
                               .dk = call.out[key],
                               .dsinks = sinks ? call.out[1 + key] : nullptr};
                if (sinks && !add_sinks) std::fill_n(g.dsinks, at.heads, T(0));
                if (!accumulate) {
                  std::fill_n(g.dq, at.query_size(), T(0));
                  if (at.apart) std::fill_n(g.dk, at.key_size(), T(0));
                }
                const Flash now = flash.of_rank(call.arguments.cp_rank);
                T *beside = call.scratch + flash.maps() * kBlock * at.keys, *dk = beside + at.key_size();
                if (flash.sorts()) g.k = sorted_keys(flash, g.k, beside), g.dk = dk, std::fill_n(dk, at.key_size(), T(0));
                for_each_tile(now, [&](const Tile& tile) {
                  if (tile.keys > 0) backward_tile(now, tile, g, call);
                });
                if (flash.sorts()) add_sorted(flash, static_cast<const T*>(dk), call.out[key]);
              },
          .scratch = flash.maps() * kBlock * at.keys + (flash.sorts() ? 2 * at.key_size() : 0)};
}

}  // namespace

template <class T>
Kernel<T> make_attention(const Form& form) {
  const std::vector<std::int64_t>&queries = form.dims(0, 4), &keys = form.dims(1, 4);
  const auto& op = form.as<ops::Attention>();
  const std::size_t operands = (form.forward() ? form.reads.size() : form.writes.size()) - (op.sinks ? 1 : 0);
  Flash flash{.at = head_layout(form, queries[0], queries[1], keys[1], operands == 2),
              .causal = op.causal,
              .drops = op.p > 0,
              .op = op};
  if (flash.causal && flash.query_positions() != flash.key_positions())
    form.refuse("a causal map that is not square", "as many queries as keys");
  if (flash.drops) flash.drop = drop_rule(form);
  flash.scale = op.scale > 0 ? op.scale : 1 / std::sqrt(static_cast<double>(flash.at.dim));
  if ((op.window > 0 || op.chunk > 0) && !op.causal) form.refuse("a window or chunks without a causal map", "a causal map");
  if (op.sinks && op.blocks > 1) form.refuse("sinks in a ring of keys", "all keys at once");
  if (form.what.phase == (op.sinks ? Phase::Backward : Phase::InputGrad)) return flash_backward<T>(form, flash);
  if (!form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  const HeadLayout& at = flash.at;
  std::vector<std::int64_t> reads = {at.query_size()};
  if (at.apart) reads.push_back(at.key_size());
  if (op.sinks) reads.push_back(at.heads);
  form.expect(reads, {flash.context_size(), flash.lse_size()});
  return {.run =
              [flash](const Call<T>& call) {
                const Flash now = flash.of_rank(call.arguments.cp_rank);
                const T* k = call.in[flash.at.apart ? 1 : 0];
                if (flash.sorts()) k = sorted_keys(flash, k, call.scratch + kBlock * flash.at.keys);
                for_each_tile(
                    now, [&](const Tile& tile) { forward_tile(now, tile, call.in[0], k, call.out[0], call.out[1], call); });
              },
          .scratch = kBlock * at.keys + (flash.sorts() ? at.key_size() : 0)};
}

template Kernel<float> make_attention(const Form&);
template Kernel<double> make_attention(const Form&);

}  // namespace foreshard::host
