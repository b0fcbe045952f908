// The arguments of the CUDA kernels: plain values, compiled by nvcc, by the emulator of the tests and by the code that launches kernels.
// "(+)=" means "+=" if `accumulate` is set, else "=". A View without data means that the array does not exist. `state` is the state of a
// dynamic loss scale (exec/arithmetic/loss_scale_state.h); without data, it is constant. Matrices are row-major. each(f) calls f(array).
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define GPU_AND_HOST __host__ __device__
#else
#define GPU_AND_HOST
#endif

namespace foreshard::gpu {

enum class Type : std::uint8_t { F32, BF16, F16, F64, I64, U8 };  // F64: only for sums in scratch memory

// An array of `elements` elements at `data`. A kernel may write to it only if `writes` is set. The emulator checks both.
struct View {
  void* data = nullptr;
  std::int64_t elements = 0;
  Type type = Type::F32;
  bool writes = false;
};

// The positions of a rank's rows, as RowPositions (core/op/sequence_part.h): the first `length` rows have positions from `first` on, the
// others from `second` on. at(row): position of a row. below(position, rows): how many of the first `rows` rows have a smaller position.
struct Positions {
  std::int64_t first = 0, length = INT64_MAX, second = 0;
  GPU_AND_HOST std::int64_t at(std::int64_t row) const { return row < length ? first + row : second + (row - length); }
  GPU_AND_HOST std::int64_t below(std::int64_t position, std::int64_t rows) const {
    const std::int64_t early = rows < length ? rows : length, late = rows - early;
    const std::int64_t a = position - first, b = position - second;
    return (a < 0 ? 0 : a < early ? a : early) + (b < 0 ? 0 : b < late ? b : late);
  }
};
// The order of rows that were gathered from all context-parallel ranks, each of which has two chunks, an early and a late one
// (SequenceSplit in core/op/sequence_part.h). row(position): index of the row with this position; position(row): the inverse.
struct GatheredOrder {
  std::int64_t chunk = 0;  // rows of a chunk; 0: rows are in the order of their positions
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

// Packs are accesses of 16 bytes (kernels/packs.h): types that support them, elements of one, whether an array is aligned for them.
GPU_AND_HOST inline bool has_packs(Type type) { return type == Type::F32 || type == Type::BF16 || type == Type::F16; }
GPU_AND_HOST inline int pack_of(Type type) { return type == Type::F32 ? 4 : 8; }
GPU_AND_HOST inline bool on_pack_border(const View& a) { return (reinterpret_cast<std::uintptr_t>(a.data) & 15U) == 0; }

// Largest number of packs per thread: of a row in registers (kernels/held_row.h), of columns in the backward of a norm (kernels/norm.h).
inline constexpr int kHeldPacks = 8, kColumnPacks = 2;

// LayerNorm of rows of h elements: y = (x - mean) / deviation * (one + weight) + bias. If not `centred`, RMSNorm: mean 0, no bias.
struct NormArgs {
  View x, weight, bias, y;
  std::int64_t rows, h;
  float eps, one;    // one: 0, or 1 for weights around one
  int warps_of_row;  // warps that share a row, with packs; 0: one warp per row, without packs
  bool centred;
  template <class F>
  void each(F f) const {
    f(x), f(weight), f(bias), f(y);
  }
};

// The backward of a norm. dx (+)= gradient of x. For the gradients of weight and bias it writes, without packs, stats [row, {mean,
// 1 / deviation}], which column_sums uses; with packs sums [weight or bias, block, column], which column_sums adds up.
struct NormGradArgs {
  View dy, x, weight, stats, dx, sums;
  std::int64_t rows, h;
  float eps, one;
  bool centred, accumulate;
  template <class F>
  void each(F f) const {
    f(dy), f(x), f(weight), f(stats), f(dx), f(sums);
  }
};

// out[c] (+)= sum over the rows r of x[r, c] * factor[r, c]. The rows are summed in chunks of rows_of_chunk. If there are several chunks,
// `out` is [chunk, column], and a second launch sums the chunks.
// The factor: 1; mask * scale; (other - mean) / deviation, from stats.
enum class Factor : std::uint8_t { One, Mask, Normalised };
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

enum class Curve : std::uint8_t { Gelu, Relu, Tanh, SwiGlu, GeGlu, ClampedSwiGlu, Cap };
// Whether rows of the input are [gate | up].
GPU_AND_HOST constexpr bool is_gated(Curve curve) {
  return curve == Curve::SwiGlu || curve == Curve::GeGlu || curve == Curve::ClampedSwiGlu;
}
// Forward: y = curve(x). Backward: y (+)= dy * curve'(x).
struct ActivationArgs {
  View x, dy, y;
  std::int64_t rows, columns;  // of the forward's result
  Curve curve;
  bool accumulate;
  float cap = 1;  // of Cap: cap tanh(x / cap)
  template <class F>
  void each(F f) const {
    f(x), f(dy), f(y);
  }
};

inline constexpr int kMostInputs = 8;
struct AddArgs {  // y (+)= scale * loss scale * (sum of the inputs) + bias; the loss scale is 1 without `state`
  View inputs[kMostInputs];
  View bias, y, state;
  std::int64_t rows, columns;
  int count;  // number of inputs
  bool accumulate;
  float scale = 1;
  template <class F>
  void each(F f) const {
    for (const View& input : inputs) f(input);
    f(bias), f(y), f(state);
  }
};

// Forward: y = skip + mask scale (x + bias), and writes the mask. Backward: y (+)= mask scale x. x consists of `runs` runs of `length`
// contiguous elements of one sample: rows [position, sample], or attention maps [sample, head].
struct DropoutArgs {
  View x, skip, bias, mask, y;
  std::int64_t runs, length, samples, heads;  // heads = 0: runs are rows; else attention maps
  int blocks_of_run;                          // thread blocks per run, in the forward
  std::int64_t first_place, first_sample;     // global numbers of the first head (of maps) and of the first sample
  std::int64_t queries, keys;                 // size of a whole map if its keys are gathered from several ranks; else 0
  Positions positions;                        // of the rows, or of the queries of a map
  GatheredOrder order;                        // of the keys of a map
  std::uint64_t seed, key;                    // random key of the mask; `key` stands for layer and site
  std::uint32_t threshold;                    // an element is kept if its random 32-bit word is at least this
  float scale;                                // 1 / (1 - p)
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(skip), f(bias), f(mask), f(y);
  }
};

// Forward: y = softmax(scale x) per row. Backward, with x = p the forward's result: y (+)= scale p (dp - sum(p dp)).
struct SoftmaxArgs {
  View x, dp, y;
  std::int64_t rows, columns;
  float scale;
  int warps_of_row;  // as in NormArgs
  bool causal, accumulate;
  std::int64_t queries;  // of this rank: row r belongs to query r mod queries
  Positions positions;   // of the queries
  GatheredOrder order;   // of the columns (keys)
  template <class F>
  void each(F f) const {
    f(x), f(dp), f(y);
  }
};

// Rotary position embedding: y (+)= rotated x. The `width` elements of a row [position, sample] begin with `heads` heads of `dim` elements,
// of which `rotated` elements from `first` on are rotated; all others are copied. table [position, {cos of rotated / 2 angles, sin of them}],
// fp32. sign: 1 forward, -1 backward.
struct RopeArgs {
  View x, table, y;
  Positions positions;
  std::int64_t rows, samples, width, heads, dim, first, rotated;
  float sign;
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(table), f(y);
  }
};

// Token embedding. Forward: rows[t] = table[i] with i = tokens[t] - first_row, or 0 if another rank has it. Gradient: table[i] += rows[t].
struct LookupArgs {
  View table, tokens, rows;
  std::int64_t count, h, table_rows, first_row;  // count: tokens; h: elements of a row; table_rows: rows on this rank
  template <class F>
  void each(F f) const {
    f(table), f(tokens), f(rows);
  }
};

// Position embedding of rows [position, sample]: y = x + table[position] + types[type of the position]. Gradient: table[position] += sum of
// the rows x at this position. `sequence` positions are divided into `type_rows` equal parts, one per type.
struct PositionArgs {
  View x, table, types, y;
  std::int64_t samples, positions, h, sequence, type_rows;
  Positions held;  // of this rank's rows
  template <class F>
  void each(F f) const {
    f(x), f(table), f(types), f(y);
  }
};

// Cross-entropy of rows of logits x. Forward: y = softmax(x), terms[row] = loss of the row. With tensor parallelism, a rank has some of the
// columns, and the forward is in stages: maxima[row], then y = e^(x - maximum) and sums[row] = {sum of y, logit of the target or 0}.
// Backward: y (+)= weight (p - 1 in the column of the target), where x is p, or e^(x - maximum) if `sums` are given. One block per row.
struct CrossEntropyArgs {
  View x, targets, maxima, sums, y, terms, state;
  std::int64_t rows, columns, used, first;  // used: columns that are classes, the others are padding; first: class of column 0
  float weight;                             // of a row in the mean loss
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(targets), f(maxima), f(sums), f(y), f(terms), f(state);
  }
};

// out[block] (+)= weight * sum of the block's terms. Block b sums `per_block` of the `count` terms.
enum class Terms : std::uint8_t { Given, Staged, Squares };  // term i: x[i]; log(x[2i]) + maxima[i] - x[2i + 1], a loss; x[i]^2
struct TermSumArgs {
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

// Gradient clipping: x *= min(1, limit / norm), norm = sqrt(square) / loss scale. Gradients and their squared norm contain the loss scale.
struct ScaleArgs {
  View square, x, state;
  double limit, loss_scale;
  template <class F>
  void each(F f) const {
    f(square), f(x), f(state);
  }
};

// The overflow check of a step: updates `state`, given the squared norm of all gradients (judged() in loss_scale_state.h).
struct JudgeArgs {
  View square, state;
  float growth, least;
  template <class F>
  void each(F f) const {
    f(square), f(state);
  }
};

// A step of Adam or SGD. Per element, with g = gradient * gradient_scale, p the master copy (else the value), m momentum, v variance:
//   Adam   x = g + decay p, m = beta1 m + rest1 x, v = beta2 v + rest2 x^2, p = keep p - step m / (sqrt(v) root + eps)
//   SGD    m = beta1 m + g + decay p, p = p - step m
// rest1 = 1 - beta1, rest2 = 1 - beta2; keep: decoupled weight decay; step and root: learning rate and bias corrections.
struct UpdateArgs {
  View gradient, master, momentum, variance, value, state;
  // steps (number of this step), betas and rate (learning rate) are used only with `state`: then the kernel computes `step` and `root`
  // itself, without the steps that were skipped.
  std::int64_t count, steps;
  double betas[2], rate;
  float gradient_scale, keep, decay, beta1, beta2, rest1, rest2, step, root, eps;
  // 1-bit Adam (Tang et al. 2021, algorithm 1). moments: the gradient is already the next first moment; frozen: v does not change.
  bool moments, frozen;
  template <class F>
  void each(F f) const {
    f(gradient), f(master), f(momentum), f(variance), f(value), f(state);
  }
};

struct CastArgs {  // y = x, in the number format of y
  View x, y;
  std::int64_t count;
  template <class F>
  void each(F f) const {
    f(x), f(y);
  }
};

// The scale of an 8-bit factor, in two launches. First: out[block] = largest magnitude of the block's `per_block` elements. Second, with
// `last` and one block: x is the result of the first, out = {scale, 1 / scale}.
struct MaxMagnitudeArgs {
  View x, out;
  std::int64_t count, per_block;
  bool last, gradient;  // gradient: for the format E5M2, else E4M3
  template <class F>
  void each(F f) const {
    f(x), f(out);
  }
};

// Rounds x * scale[0] to 8 bits. y of type U8 gets the codes, any other y the values of the codes / scale[0].
struct EightBitsArgs {
  View x, scale, y;
  std::int64_t rows, columns;
  bool gradient, transposed;  // gradient: as in MaxMagnitudeArgs; transposed: y is transposed
  template <class F>
  void each(F f) const {
    f(x), f(scale), f(y);
  }
};

inline constexpr int kMostPeers = 16;
enum class Fold : std::uint8_t { Sum, Mean, Max };
// A reduction over ranks: to[j][i] (+)= from[0][i] + from[1][i] + ..., in this order, for i from `first` to first + count - 1.
struct ReduceArgs {
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

// Convolution windows and pooling of images [plane, height, width]; a plane is one channel of one sample. The columns of a convolution
// (im2col) are [plane, tap, output pixel], where a tap is a position in the window.
struct WindowArgs {
  View x, picture, y;  // picture: the input of the forward, for the backward of max pooling
  std::int64_t planes, height, width, out_height, out_width, kernel, stride, padding;
  bool maximum, accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(picture), f(y);
  }
};

// Batch norm, bias and sums per channel. x, dy, y (in the backward the gradient of x) are [sample, channel, pixel], the others [channel].
struct ChannelArgs {
  View x, dy, weight, bias, y, weight_grad, bias_grad;
  std::int64_t samples, channels, pixels;
  float eps;
  bool accumulate, accumulate_weights;
  template <class F>
  void each(F f) const {
    f(x), f(dy), f(weight), f(bias), f(y), f(weight_grad), f(bias_grad);
  }
};

}  // namespace foreshard::gpu
