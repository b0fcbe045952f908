// Attention against its definition; flash against the separate operators, dropout included; rotary positions.
#include <gtest/gtest.h>

#include <cmath>

#include "exec/base/philox.h"
#include "tests/exec/host_arrays.h"

namespace foreshard::host_attention_test {
namespace {

struct Heads {
  std::int64_t samples = 2, positions = 5, heads = 4, kv = 2, dim = 3;
  bool causal = true;
  std::int64_t width() const { return (heads + 2 * kv) * dim; }
  std::int64_t maps() const { return samples * heads * positions * positions; }
  // Element i of the query, key (block 0), value (block 1) of a head.
  double q(const Array& qkv, std::int64_t p, std::int64_t s, std::int64_t h, std::int64_t i) const {
    return qkv.at((p * samples + s) * width() + h * dim + i);
  }
  double kv_of(const Array& qkv, std::int64_t p, std::int64_t s, std::int64_t h, std::int64_t i, int block) const {
    return qkv.at((p * samples + s) * width() + (heads + block * kv + h / (heads / kv)) * dim + i);
  }
};

// softmax(q k^T / sqrt(dim)) v, one number after the other; keep: factor on each probability [sample, head, query, key].
std::vector<double> attention(const Heads& a, const Array& qkv, const std::vector<double>& keep) {
  std::vector<double> context(static_cast<std::size_t>(a.samples * a.positions * a.heads * a.dim));
  for (std::int64_t s = 0; s < a.samples; ++s)
    for (std::int64_t h = 0; h < a.heads; ++h)
      for (std::int64_t p = 0; p < a.positions; ++p) {
        const std::int64_t visible = a.causal ? p + 1 : a.positions;
        std::vector<double> e(static_cast<std::size_t>(visible));
        double sum = 0;
        for (std::int64_t t = 0; t < visible; ++t) {
          double dot = 0;
          for (std::int64_t i = 0; i < a.dim; ++i) dot += a.q(qkv, p, s, h, i) * a.kv_of(qkv, t, s, h, i, 0);
          sum += e[static_cast<std::size_t>(t)] = std::exp(dot / std::sqrt(static_cast<double>(a.dim)));
        }
        for (std::int64_t t = 0; t < visible; ++t)
          for (std::int64_t i = 0; i < a.dim; ++i)
            context[static_cast<std::size_t>(((p * a.samples + s) * a.heads + h) * a.dim + i)] +=
                e[static_cast<std::size_t>(t)] / sum * a.kv_of(qkv, t, s, h, i, 1) *
                keep[static_cast<std::size_t>(((s * a.heads + h) * a.positions + p) * a.positions + t)];
      }
  return context;
}

struct Separate {
  Array scores = {}, probabilities = {}, dropped = {}, mask = {}, context = {};
};

Compute scores_op(const Heads& a) {
  return {.op = ops::Scores{.causal = a.causal, .heads = a.heads, .kv_heads = a.kv, .dim = a.dim},
          .shapes = {{{a.samples * a.heads, a.positions, a.positions, a.dim}, DType::F64}}};
}
Compute softmax_op(const Heads& a) {  // the scale is 1 / sqrt(3)
  return {.op = ops::Softmax{.causal = a.causal, .scale = 0.57735026918962576},
          .shapes = {{{a.samples * a.heads * a.positions, a.positions}, DType::F64}}};
}
Compute dropout_op(const Heads& a) {
  return {.op = ops::Dropout{.p = 0.4, .site = 1}, .shapes = {{{a.samples, a.heads, a.positions, a.positions}, DType::F64}}};
}
Compute weighted_op(const Heads& a) {
  return {.op = ops::WeightedValues{.causal = a.causal, .heads = a.heads, .kv_heads = a.kv, .dim = a.dim},
          .shapes = {{{a.samples * a.heads, a.positions, a.dim, a.positions}, DType::F64}}};
}
Compute flash_op(const Heads& a, bool drops) {
  return {
      .op = ops::Attention{.causal = a.causal,
                           .heads = a.heads,
                           .kv_heads = a.kv,
                           .dim = a.dim,
                           .p = drops ? 0.4 : 0,
                           .site = drops ? 1 : 0},
      .shapes = {{{a.samples, a.positions, a.heads, a.dim}, DType::F64}, {{a.samples, a.positions, a.kv, a.dim}, DType::F64}}};
}
std::int64_t context_size(const Heads& a) { return a.samples * a.positions * a.heads * a.dim; }

Separate run_separately(const Heads& a, const Array& qkv, bool drops, const OpArguments& arguments) {
  Separate out;
  out.scores = outputs_of(scores_op(a), {qkv}, {a.maps()})[0];
  out.dropped = out.probabilities = outputs_of(softmax_op(a), {out.scores}, {a.maps()})[0];
  if (drops) {
    std::vector<Array> reads = {out.probabilities}, writes = {Array(a.maps(), DType::F64), Array(a.maps(), DType::U8)};
    run_on(dropout_op(a), reads, writes, arguments);
    out.dropped = writes[0], out.mask = writes[1];
  }
  out.context = outputs_of(weighted_op(a), {out.dropped, qkv}, {context_size(a)})[0];
  return out;
}

const OpArguments kArguments{.seed = 11, .layer = 3, .first_sample = 8, .samples = 2, .tp = 4, .tp_rank = 2};

TEST(HostAttention, SeparateAndFlashAreTheDefinition) {
  for (const bool causal : {false, true})
    for (const std::int64_t kv : {1, 2, 4})
      for (const bool drops : {false, true})
        for (const std::int64_t positions : {1, 5, 150}) {  // 150: three blocks of queries
          const Heads a{.positions = positions, .kv = kv, .causal = causal};
          const Array qkv = random_array(a.samples * a.positions * a.width(), 5);
          const Separate separate = run_separately(a, qkv, drops, kArguments);
          std::vector<double> keep(static_cast<std::size_t>(a.maps()), 1.0);
          for (std::size_t i = 0; drops && i < keep.size(); ++i) keep[i] = separate.mask.at(static_cast<std::int64_t>(i)) / 0.6;
          const std::vector<double> expected = attention(a, qkv, keep);
          EXPECT_LT(relative_error(separate.context.values(), expected), 1e-13);
          const std::vector<Array> flash =
              outputs_of(flash_op(a, drops), {qkv}, {context_size(a), a.samples * a.heads * a.positions}, kArguments);
          EXPECT_LT(relative_error(flash[0].values(), expected), 1e-13);
        }
}

// softmax of capped scores of the keys that a query sees, and of the head's sink; queries, and keys with values, apart.
TEST(HostAttention, MasksSinksCapsAndValueSizesByDefinition) {
  const std::int64_t s = 150, heads = 4, kv = 2, dim = 3, values = 5;  // three blocks of queries
  const Array q = random_array(s * heads * dim, 5), keys = random_array(s * kv * (dim + values), 6),
              sinks = random_array(heads, 7);
  for (const auto& [window, chunk] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {1, 0}, {70, 0}, {149, 0}, {0, 64}, {0, 1}})
    for (const bool special : {false, true}) {
      const ops::Attention op{.causal = true,
                              .heads = heads,
                              .kv_heads = kv,
                              .dim = dim,
                              .scale = special ? 0.7 : 0,
                              .score_cap = special ? 0.5 : 0,
                              .window = window,
                              .chunk = chunk,
                              .sinks = special,
                              .value_dim = values};
      const Compute what{.op = op, .shapes = {{{1, s, heads, dim}, DType::F64}, {{1, s, kv, dim}, DType::F64}}};
      std::vector<double> expected(static_cast<std::size_t>(s * heads * values));
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t p = 0; p < s; ++p) {
          double sum = special ? std::exp(sinks.at(h)) : 0;
          std::vector<double> e(static_cast<std::size_t>(s));
          for (std::int64_t t = 0; t <= p; ++t) {
            if ((window > 0 && p - t >= window) || (chunk > 0 && p / chunk != t / chunk)) continue;
            double dot = 0;
            for (std::int64_t i = 0; i < dim; ++i)
              dot += q.at((p * heads + h) * dim + i) * keys.at(t * kv * (dim + values) + h / 2 * dim + i);
            dot *= special ? 0.7 : 1 / std::sqrt(3.0);
            sum += e[static_cast<std::size_t>(t)] = std::exp(special ? 0.5 * std::tanh(dot / 0.5) : dot);
          }
          for (std::int64_t t = 0; t <= p; ++t)
            for (std::int64_t i = 0; i < values; ++i)
              expected[static_cast<std::size_t>((p * heads + h) * values + i)] +=
                  e[static_cast<std::size_t>(t)] / sum * keys.at(t * kv * (dim + values) + kv * dim + h / 2 * values + i);
        }
      std::vector<Array> reads = {q, keys};
      if (special) reads.push_back(sinks);
      const std::vector<Array> found = outputs_of(what, reads, {s * heads * values, heads * s});
      EXPECT_LT(relative_error(found[0].values(), expected), 1e-13) << window << " " << chunk << " " << special;
    }
}

TEST(HostAttention, FlashBackwardIsThatOfTheSeparateOperators) {
  for (const bool drops : {false, true}) {
    const Heads a{.positions = 70};
    const Array qkv = random_array(a.samples * a.positions * a.width(), 5), dy = random_array(context_size(a), 6);
    const Separate forward = run_separately(a, qkv, drops, kArguments);
    const auto backward = [](Compute what) {
      what.phase = Phase::InputGrad;
      return what;
    };
    Compute scores = backward(scores_op(a));
    std::vector<Array> grads = outputs_of(backward(weighted_op(a)), {dy, forward.dropped, qkv}, {a.maps(), qkv.size()});
    if (drops) grads[0] = outputs_of(backward(dropout_op(a)), {grads[0], forward.mask}, {a.maps()}, kArguments)[0];
    grads[0] = outputs_of(backward(softmax_op(a)), {grads[0], forward.probabilities}, {a.maps()})[0];
    std::vector<Array> reads = {grads[0], qkv}, sum = {grads[1]};
    scores.accumulate = true;
    run_on(scores, reads, sum);
    const std::vector<Array> flash =
        outputs_of(flash_op(a, drops), {qkv}, {context_size(a), a.samples * a.heads * a.positions}, kArguments);
    const Array dqkv = outputs_of(backward(flash_op(a, drops)), {dy, qkv, flash[0], flash[1]}, {qkv.size()}, kArguments)[0];
    EXPECT_LT(relative_error(dqkv, sum[0]), 1e-13) << drops;
  }
}

TEST(HostAttention, HugeScoresStayFinite) {
  const Heads a{.positions = 6};
  Array qkv = random_array(a.samples * a.positions * a.width(), 5);
  for (std::int64_t i = 0; i < qkv.size(); ++i) qkv.set(i, 1e3 * qkv.at(i));
  for (const double x : run_separately(a, qkv, false, kArguments).context.values()) EXPECT_TRUE(std::isfinite(x));
  for (const double x : outputs_of(flash_op(a, false), {qkv}, {context_size(a), 48}, kArguments)[0].values())
    EXPECT_TRUE(std::isfinite(x));
}

// ---- rotary positions ----

// (a + ib) e^{i p theta^(-2 j / dim)} for the pair (j, j + dim/2) of position p.
TEST(HostRope, RotatesPairsAndCopiesValues) {
  const std::int64_t samples = 2, positions = 4, heads = 2, kv = 1, dim = 6, width = (heads + 2 * kv) * dim;
  const Array x = random_array(samples * positions * width, 3);
  Compute what{.op = ops::Rope{.heads = 2, .kv_heads = 1, .dim = 6, .theta = 500},
               .shapes = {{{samples, positions, width}, DType::F64}}};
  const Array y = outputs_of(what, {x}, {x.size()})[0];
  for (std::int64_t row = 0; row < samples * positions; ++row)
    for (std::int64_t head = 0; head < heads + 2 * kv; ++head)
      for (std::int64_t j = 0; j < dim / 2; ++j) {
        const std::int64_t at = row * width + head * dim + j;
        const double angle = head < heads + kv ? static_cast<double>(row / samples) * std::pow(500.0, -2.0 * j / dim) : 0.0;
        EXPECT_NEAR(y.at(at), x.at(at) * std::cos(angle) - x.at(at + 3) * std::sin(angle), 1e-14);
        EXPECT_NEAR(y.at(at + 3), x.at(at + 3) * std::cos(angle) + x.at(at) * std::sin(angle), 1e-14);
      }
  what.phase = Phase::InputGrad;  // turning back is the inverse
  EXPECT_LT(relative_error(outputs_of(what, {y}, {x.size()})[0], x), 1e-14);
}

// What turns is also multiplied, values are not; so is the gradient.
TEST(HostRope, ScalesWhatItTurns) {
  const std::int64_t positions = 3, heads = 1, kv = 1, dim = 4, width = (heads + 2 * kv) * dim;
  const Array x = random_array(positions * width, 5);
  Compute plain{.op = ops::Rope{.heads = 1, .kv_heads = 1, .dim = 4}, .shapes = {{{1, positions, width}, DType::F64}}};
  Compute scaled = plain;
  scaled.op = ops::Rope{.heads = 1, .kv_heads = 1, .dim = 4, .scale = 1.5};
  for (const Phase phase : {Phase::Forward, Phase::InputGrad}) {
    plain.phase = scaled.phase = phase;
    const Array once = outputs_of(plain, {x}, {x.size()})[0], more = outputs_of(scaled, {x}, {x.size()})[0];
    for (std::int64_t i = 0; i < x.size(); ++i) EXPECT_NEAR(more.at(i), once.at(i) * (i % width < 2 * dim ? 1.5 : 1.0), 1e-14);
  }
}

}  // namespace
}  // namespace foreshard::host_attention_test
