// What the CUDA kernels are told: plain values, the same for nvcc, for the emulator of the tests and for those who launch them.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define GPU_AND_HOST __host__ __device__
#else
#define GPU_AND_HOST
#endif

namespace foreshard::gpu {

enum class Type : std::uint8_t { F32, BF16, F16, F64, I64, U8 };  // F64: sums in scratch memory only

// An operand of a kernel: `elements` from `data` on. A kernel may only write where `writes` says so; the emulator checks both.
struct View {
  void* data = nullptr;
  std::int64_t elements = 0;
  Type type = Type::F32;
  bool writes = false;
};

// RowPositions and the order of SequenceSplit (core/op/sequence_part.h) as kernels read them.
struct Positions {
  std::int64_t first = 0, length = INT64_MAX, second = 0;
  GPU_AND_HOST std::int64_t at(std::int64_t row) const { return row < length ? first + row : second + (row - length); }
  GPU_AND_HOST std::int64_t below(std::int64_t position, std::int64_t rows) const {
    const std::int64_t early = rows < length ? rows : length, late = rows - early;
    const std::int64_t a = position - first, b = position - second;
    return (a < 0 ? 0 : a < early ? a : early) + (b < 0 ? 0 : b < late ? b : late);
  }
};
struct GatheredOrder {
  std::int64_t chunk = 0;  // rows of each of two chunks per rank; 0: rows lie in the order of their positions
  int ranks = 1;
  GPU_AND_HOST std::int64_t row(std::int64_t position) const {
    if (chunk == 0) return position;
    const std::int64_t c = position / chunk, i = position - c * chunk;
    return c < ranks ? 2 * c * chunk + i : (2 * (2 * ranks - 1 - c) + 1) * chunk + i;
  }
  GPU_AND_HOST std::int64_t position(std::int64_t row) const {
    if (chunk == 0) return row;
    const std::int64_t half = row / chunk, rank = half / 2, i = row - half * chunk;
    return half % 2 == 0 ? rank * chunk + i : (2 * ranks - 1 - rank) * chunk + i;
  }
};

// Packs of 16 bytes (kernels/packs.h): the types that have them, the elements of one, and whether an array begins where one may.
GPU_AND_HOST inline bool has_packs(Type type) { return type == Type::F32 || type == Type::BF16 || type == Type::F16; }
GPU_AND_HOST inline int pack_of(Type type) { return type == Type::F32 ? 4 : 8; }
GPU_AND_HOST inline bool on_pack_border(const View& a) { return (reinterpret_cast<std::uintptr_t>(a.data) & 15U) == 0; }

// Packs of a row that a thread keeps in registers (kernels/held_row.h), and that it has of the columns of a norm's backward (kernels/norm.h).
inline constexpr int kHeldPacks = 8, kColumnPacks = 2;

// `state`: that of a dynamic loss scale, exec/arithmetic/loss_scale_state.h; without data the scale is constant.
// Each kernel's arguments have `each`, which calls f with every array.
struct NormArgs {  // y = (x - mean) / deviation * weight + bias; rms: no mean, no bias
  View x, weight, bias, y;
  std::int64_t rows, h;
  float eps;
  int warps_of_row;  // by packs; 0: one by one, a warp per row
  bool centred;
  template <class F>
  void each(F f) const {
    f(x), f(weight), f(bias), f(y);
  }
};

struct NormGradArgs {                   // stats: {mean, 1 / deviation} per row, written; dx without data: not wanted
  View dy, x, weight, stats, dx, sums;  // sums: by packs, [weight or bias, block, column], written
  std::int64_t rows, h;
  float eps;
  bool centred, accumulate;
  template <class F>
  void each(F f) const {
    f(dy), f(x), f(weight), f(stats), f(dx), f(sums);
  }
};

// out[c] (+)= sum over rows of x[r, c] * factor. Rows are summed in chunks; with more than one chunk `out` is [chunk, column]
// and a second launch sums the chunks.
enum class Factor : std::uint8_t { One, Mask, Normalised };  // mask scale; (other - mean) / deviation
struct ColumnSumArgs {
  View x, mask, other, stats, out;
  std::int64_t rows, columns, rows_of_chunk;
  Factor factor;
  float scale;
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(mask), f(other), f(stats), f(out);
  }
};

enum class Curve : std::uint8_t { Gelu, Relu, Tanh, SwiGlu };
struct ActivationArgs {  // forward: y of x; backward: y (+)= dy slope(x)
  View x, dy, y;
  std::int64_t rows, columns;  // of the result of the forward
  Curve curve;
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(dy), f(y);
  }
};

inline constexpr int kMostInputs = 8;
struct AddArgs {  // y (+)= scale * sum of the inputs + bias
  View inputs[kMostInputs];
  View bias, y, state;  // the sum carries the loss scale
  std::int64_t rows, columns;
  int count;
  bool accumulate;
  float scale = 1;
  template <class F>
  void each(F f) const {
    for (const View& input : inputs) f(input);
    f(bias), f(y), f(state);
  }
};

// Runs of `length` contiguous elements of one sample: rows [position, sample] or maps [sample, head].
struct DropoutArgs {  // forward: y = skip + keep scale (x + bias); backward: y (+)= keep scale x
  View x, skip, bias, mask, y;
  std::int64_t runs, length, samples, heads;  // heads 0: rows
  int blocks_of_run;                          // of the forward
  std::int64_t first_place, first_sample;     // of this rank and micro-batch; first_place: of maps
  std::int64_t queries, keys;                 // of a whole map, where keys come from several ranks; else 0
  Positions positions;                        // of rows, or of the queries of a map
  GatheredOrder order;                        // of the keys
  std::uint64_t seed, key;                    // key: of layer and site
  std::uint32_t threshold;
  float scale;
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(skip), f(bias), f(mask), f(y);
  }
};

struct SoftmaxArgs {  // forward: y = softmax(scale x); backward: y (+)= scale p (dp - sum(p dp)), x = p
  View x, dp, y;
  std::int64_t rows, columns;
  float scale;
  int warps_of_row;  // by packs; 0: one by one, a warp per row
  bool causal, accumulate;
  std::int64_t queries;  // of this rank: row r is that of query r mod queries
  Positions positions;   // of the queries
  GatheredOrder order;   // of the columns
  template <class F>
  void each(F f) const {
    f(x), f(dp), f(y);
  }
};

struct RopeArgs {
  View x, table, y;  // table: [position, cos of dim / 2 angles, sin]
  Positions positions;
  std::int64_t rows, samples, width, rotated, dim;
  float sign;
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(table), f(y);
  }
};

struct LookupArgs {  // forward: out = row of the table; gradient: table (+)= sums of dy
  View table, tokens, rows;
  std::int64_t count, h, table_rows, first_row;
  template <class F>
  void each(F f) const {
    f(table), f(tokens), f(rows);
  }
};

struct PositionArgs {  // rows [position, sample]; y = x + table[position] + types[type of the position]
  View x, table, types, y;
  std::int64_t samples, positions, h, sequence, type_rows;
  Positions held;
  template <class F>
  void each(F f) const {
    f(x), f(table), f(types), f(y);
  }
};

struct CrossEntropyArgs {  // one block per row
  View x, targets, maxima, sums, y, terms, state;
  std::int64_t rows, columns, used, first;  // columns that are classes; the first of this rank
  float weight;
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(targets), f(maxima), f(sums), f(y), f(terms), f(state);
  }
};

enum class Terms : std::uint8_t { Given, Staged, Squares };  // as they are; log(sum) + max - logit; x^2
struct TermSumArgs {                                         // out[block] or out[0] = weight * sum
  View x, maxima, out;
  std::int64_t count, per_block;
  double weight;
  Terms terms;
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(maxima), f(out);
  }
};

struct ScaleArgs {  // x *= min(1, limit / norm), norm = sqrt(square) / loss_scale
  View square, x, state;
  double limit, loss_scale;
  template <class F>
  void each(F f) const {
    f(square), f(x), f(state);
  }
};

struct JudgeArgs {  // the state after a step whose gradients have this square of their norm
  View square, state;
  float growth, least;
  template <class F>
  void each(F f) const {
    f(square), f(state);
  }
};

struct UpdateArgs {  // Adam and SGD on the same elements of all arrays; those without data are not there
  View gradient, master, momentum, variance, value, state;
  std::int64_t count,
      steps;  // of the training; steps, betas and rate count with `state` only: it says how many steps were skipped
  double betas[2], rate;
  float gradient_scale, keep, decay, beta1, beta2, rest1, rest2, step, root, eps;  // SGD: beta1 momentum, step rate
  bool moments, frozen;  // Adam: the gradient is the next first moment; the second one stays
  template <class F>
  void each(F f) const {
    f(gradient), f(master), f(momentum), f(variance), f(value), f(state);
  }
};

struct CastArgs {
  View x, y;
  std::int64_t count;
  template <class F>
  void each(F f) const {
    f(x), f(y);
  }
};

struct LargestArgs {  // out[block]: the largest magnitude; last, by one block: {scale, 1 / scale}
  View x, out;
  std::int64_t count, per_block;
  bool last, gradient;  // of E5M2, else E4M3
  template <class F>
  void each(F f) const {
    f(x), f(out);
  }
};

struct EightBitsArgs {  // y: codes (U8), or what they stand for
  View x, scale, y;
  std::int64_t rows, columns;
  bool gradient, turned;
  template <class F>
  void each(F f) const {
    f(x), f(scale), f(y);
  }
};

inline constexpr int kMostPeers = 16;
enum class Fold : std::uint8_t { Sum, Mean, Max };
struct
    ReduceArgs {  // to[j][i] (+)= from[0][i] + from[1][i] + ... in the order of the sources, for `count` elements from `first` on
  View from[kMostPeers], to[kMostPeers];
  std::int64_t first, count;
  int sources, targets;
  Fold fold;
  bool accumulate;
  template <class F>
  void each(F f) const {
    for (const View& array : from) f(array);
    for (const View& array : to) f(array);
  }
};

// Pictures [plane, height, width]; a plane is a channel of a sample. Columns of a convolution are [plane, tap, output pixel].
struct WindowArgs {
  View x, picture, y;  // picture: what a maximum was taken of
  std::int64_t planes, height, width, out_height, out_width, kernel, stride, padding;
  bool maximum, accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(picture), f(y);
  }
};

struct ChannelArgs {  // x, dy, y: [sample, channel, pixel]; the others: [channel]
  View x, dy, weight, bias, y, weight_grad, bias_grad;
  std::int64_t samples, channels, pixels;
  float eps;
  bool accumulate, accumulate_weights;
  template <class F>
  void each(F f) const {
    f(x), f(dy), f(weight), f(bias), f(y), f(weight_grad), f(bias_grad);
  }
};

// Which places of an attention's map dropout keeps, drawn by head, sample and position of the whole.
struct MapDropout {
  std::uint64_t seed, key;
  std::int64_t first_head, first_sample;  // of this rank and micro-batch
  std::int64_t all_queries, all_keys;     // of the sequence
  std::uint32_t threshold;
  float scale;
  bool drops;
};

// Element (position, sample, head, i) of an operand is at position * steps.position + sample * steps.sample + head * dim + i.
struct RowSteps {
  std::int64_t position, sample;
};

// Attention that keeps no map.
struct AttentionArgs {
  View q, k, v, context, lse, dcontext, delta, dq, dk, dv;
  std::int64_t samples, queries, keys, heads, kv_heads, dim;
  RowSteps query_steps, key_steps;
  MapDropout drop;
  float scale;
  bool causal, accumulate;
  Positions query_positions, key_positions;  // keys are counted in the order of their positions ...
  GatheredOrder order;                       // ... and lie in this one
  template <class F>
  void each(F f) const {
    f(q), f(k), f(v), f(context), f(lse), f(dcontext), f(delta), f(dq), f(dk), f(dv);
  }
};

// Two parts of attention become one; their arrays are [query, sample, head, dim] and [sample, head, query].
struct MergeArgs {
  View context, lse, other, other_lse, merged, merged_lse;
  std::int64_t samples, queries, heads, dim;
  template <class F>
  void each(F f) const {
    f(context), f(lse), f(other), f(other_lse), f(merged), f(merged_lse);
  }
};

// Rows of [heads | kv_heads | kv_heads], or `parts` arrays of rows with a part of each.
struct HeadPartsArgs {
  View x, y;
  std::int64_t rows, heads, kv_heads, dim;
  int parts;
  bool join, accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(y);
  }
};

}  // namespace foreshard::gpu
