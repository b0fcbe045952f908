// Element by element: activations, sums, dropout, casts, rotary positions, optimizer updates, sums over peers.
#pragma once

#include "exec/cuda/kernels/packs.h"

namespace foreshard::gpu {

// Elements [i, i + 4) of this thread, then those a grid further on.
GPU_FUNCTION std::int64_t first_element() { return 4 * (block() * threads() + thread()); }
GPU_FUNCTION std::int64_t element_stride() { return 4 * blocks() * threads(); }

// GPT-2's form of GELU is x sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3). The saved operand of relu and tanh is their result.
GPU_FUNCTION float curve_value(Curve curve, float x) {
  switch (curve) {
    case Curve::Gelu: return x * sigmoid(1.5957691216057307f * x * (1.0f + 0.044715f * x * x));
    case Curve::Relu: return x > 0 ? x : 0.0f;
    case Curve::Tanh: return tanhf(x);
    case Curve::SwiGlu: return x * sigmoid(x);
  }
  return 0;
}
GPU_FUNCTION float curve_slope(Curve curve, float x) {
  switch (curve) {
    case Curve::Gelu: {
      const float s = sigmoid(1.5957691216057307f * x * (1.0f + 0.044715f * x * x));
      return s + x * s * (1.0f - s) * 1.5957691216057307f * (1.0f + 3 * 0.044715f * x * x);
    }
    case Curve::Relu: return x > 0 ? 1.0f : 0.0f;
    case Curve::Tanh: return 1.0f - x * x;
    case Curve::SwiGlu: {
      const float s = sigmoid(x);
      return s + x * s * (1.0f - s);
    }
  }
  return 0;
}

// SwiGLU: x = [gate, up] along the columns, y = silu(gate) up.
// Reads 2 bytes of bf16 and writes 2 per element (SwiGLU: reads 4); limit: memory.
template <Type type, Curve curve>
GPU_FUNCTION void activation_forward_packs(const ActivationArgs& a) {
  constexpr int n = kPack<type>;
  const int size = static_cast<int>(a.rows * a.columns), columns = static_cast<int>(a.columns);
  for (int i = first_pack<type>(); i < size; i += pack_stride<type>()) {
    float x[n], up[n];
    const int at = curve == Curve::SwiGlu ? i + i / columns * columns : i;
    load_pack<type>(a.x, at, x);
    if constexpr (curve == Curve::SwiGlu) load_pack<type>(a.x, at + columns, up);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) x[j] = curve_value(curve, x[j]) * (curve == Curve::SwiGlu ? up[j] : 1.0f);
    store_pack<type>(a.y, i, x);
  }
}

// Reads 4 bytes of bf16 and writes 2 per element (SwiGLU: 6 and 4), with `accumulate` as many more as it writes; limit: memory.
template <Type type, Curve curve>
GPU_FUNCTION void activation_backward_packs(const ActivationArgs& a) {
  constexpr int n = kPack<type>;
  const int size = static_cast<int>(a.rows * a.columns), columns = static_cast<int>(a.columns);
  for (int i = first_pack<type>(); i < size; i += pack_stride<type>()) {
    float x[n], dy[n], old[n], up[n], old_up[n];
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] = 0, old_up[j] = 0;
    const int at = curve == Curve::SwiGlu ? i + i / columns * columns : i;
    load_pack<type>(a.dy, i, dy);
    load_pack<type>(a.x, at, x);
    if (a.accumulate) load_pack<type>(a.y, at, old);
    if constexpr (curve == Curve::SwiGlu) {
      load_pack<type>(a.x, at + columns, up);
      if (a.accumulate) load_pack<type>(a.y, at + columns, old_up);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) {
        old_up[j] += dy[j] * curve_value(curve, x[j]);
        old[j] += dy[j] * up[j] * curve_slope(curve, x[j]);
      }
      store_pack<type>(a.y, at + columns, old_up);
    } else {
      GPU_UNROLL
      for (int j = 0; j < n; ++j) old[j] += dy[j] * curve_slope(curve, x[j]);
    }
    store_pack<type>(a.y, at, old);
  }
}

// The body of the type and the curve, where all arrays are of one type and rows are whole packs; false: no body.
template <bool forward, Type type>
GPU_FUNCTION void activation_of(const ActivationArgs& a) {
  switch (a.curve) {
#define CURVE(curve)                                                        \
  case curve:                                                               \
    if constexpr (forward) return activation_forward_packs<type, curve>(a); \
    return activation_backward_packs<type, curve>(a);
    CURVE(Curve::Gelu)
    CURVE(Curve::Relu)
    CURVE(Curve::Tanh)
    CURVE(Curve::SwiGlu)
#undef CURVE
  }
}
template <bool forward>
GPU_FUNCTION bool activation_packs(const ActivationArgs& a) {
  const Type type = a.x.type;
  if (!has_packs(type) || a.columns % pack_of(type) != 0 || 2 * a.rows * a.columns > kMostPacked) return false;
  if (!packed(a.x, type) || !packed(a.dy, type) || !packed(a.y, type)) return false;
  if (type == Type::F32) return activation_of<forward, Type::F32>(a), true;
  if (type == Type::BF16) return activation_of<forward, Type::BF16>(a), true;
  return activation_of<forward, Type::F16>(a), true;
}

GPU_KERNEL activation_forward(const ActivationArgs a) {
  if (activation_packs<true>(a)) return;
  const std::int64_t size = a.rows * a.columns;
  float x[4] = {}, up[4] = {1, 1, 1, 1};
  for (std::int64_t i = first_element(); i < size; i += element_stride()) {
    const int count = up_to_four(size - i);
    if (a.curve == Curve::SwiGlu) {
      GPU_UNROLL
      for (int j = 0; j < 4; ++j) {
        if (j >= count) break;
        const std::int64_t row = (i + j) / a.columns, at = (i + j) + row * a.columns;
        x[j] = load(a.x, at), up[j] = load(a.x, at + a.columns);
      }
    } else {
      load4(a.x, i, count, x);
    }
    GPU_UNROLL
    for (int j = 0; j < 4; ++j) x[j] = curve_value(a.curve, x[j]) * up[j];
    store4(a.y, i, count, x);
  }
}

GPU_KERNEL activation_backward(const ActivationArgs a) {
  if (activation_packs<false>(a)) return;
  const std::int64_t size = a.rows * a.columns;
  float x[4], dy[4], old[4] = {0, 0, 0, 0};
  for (std::int64_t i = first_element(); i < size; i += element_stride()) {
    const int count = up_to_four(size - i);
    load4(a.dy, i, count, dy);
    if (a.curve == Curve::SwiGlu) {
      GPU_UNROLL
      for (int j = 0; j < 4; ++j) {
        if (j >= count) break;
        const std::int64_t row = (i + j) / a.columns, gate_at = (i + j) + row * a.columns, up_at = gate_at + a.columns;
        const float gate = load(a.x, gate_at), up = load(a.x, up_at);
        store(a.y, gate_at, old_value(a.accumulate, a.y, gate_at) + dy[j] * up * curve_slope(a.curve, gate));
        store(a.y, up_at, old_value(a.accumulate, a.y, up_at) + dy[j] * curve_value(a.curve, gate));
      }
      continue;
    }
    load4(a.x, i, count, x);
    if (a.accumulate) load4(a.y, i, count, old);
    GPU_UNROLL
    for (int j = 0; j < 4; ++j) x[j] = old[j] + dy[j] * curve_slope(a.curve, x[j]);
    store4(a.y, i, count, x);
  }
}

// As the host adds: the first input, the bias, then the others.
// ---- a dynamic loss scale: exec/host/loss_scale_state.h ----------------------------------------------------------------------------
GPU_FUNCTION float power_of_two(float exponent) { return ldexpf(1.0f, static_cast<int>(exponent)); }
GPU_FUNCTION float scale_of_backward(const View& state) { return state.data ? power_of_two(load(state, 0)) : 1.0f; }
GPU_FUNCTION float scale_of_update(const View& state) { return state.data ? power_of_two(load(state, 1)) : 1.0f; }
GPU_FUNCTION bool skips_update(const View& state) { return state.data && load(state, 4) != 0; }

// One thread.
GPU_KERNEL judge_overflow(const JudgeArgs a) {
  if (thread() > 0) return;
  const float square = load(a.square, 0), exponent = load(a.state, 0);
  const bool finite = square - square == 0;
  const float good = finite ? load(a.state, 2) + 1 : 0.0f;
  const bool grows = finite && good >= a.growth;
  store(a.state, 1, exponent);
  store(a.state, 4, finite ? 0.0f : 1.0f);
  store(a.state, 0, finite ? exponent + (grows ? 1.0f : 0.0f) : fmaxf(exponent - 1, a.least));
  store(a.state, 2, grows ? 0.0f : good);
  if (!finite) store(a.state, 3, load(a.state, 3) + 1);
}

// Reads 2 bytes of bf16 per element and input, writes 2; limit: memory.
template <Type type>
GPU_FUNCTION void add_packs(const AddArgs& a) {
  constexpr int n = kPack<type>;
  const float scale = a.scale * scale_of_backward(a.state);
  const int size = static_cast<int>(a.rows * a.columns), columns = static_cast<int>(a.columns);
  for (int i = first_pack<type>(); i < size; i += pack_stride<type>()) {
    float sum[n], x[n];
    load_pack<type>(a.accumulate ? a.y : a.inputs[0], i, sum);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) sum[j] *= a.accumulate ? 1.0f : scale;
    if (a.bias.data) {
      load_pack<type>(a.bias, i % columns, x);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) sum[j] += x[j];
    }
    for (int input = a.accumulate ? 0 : 1; input < a.count; ++input) {
      load_pack<type>(a.inputs[input], i, x);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) sum[j] += scale * x[j];
    }
    store_pack<type>(a.y, i, sum);
  }
}
GPU_FUNCTION bool add_by_packs(const AddArgs& a) {
  const Type type = a.y.type;
  if (!has_packs(type) || a.columns % pack_of(type) != 0 || a.rows * a.columns > kMostPacked) return false;
  if (!packed(a.y, type) || !packed(a.bias, type)) return false;
  for (int input = 0; input < a.count; ++input)
    if (!packed(a.inputs[input], type)) return false;
  if (type == Type::F32) return add_packs<Type::F32>(a), true;
  if (type == Type::BF16) return add_packs<Type::BF16>(a), true;
  return add_packs<Type::F16>(a), true;
}

GPU_KERNEL add_arrays(const AddArgs a) {
  if (add_by_packs(a)) return;
  const float scale = a.scale * scale_of_backward(a.state);
  const std::int64_t size = a.rows * a.columns;
  float sum[4], x[4];
  for (std::int64_t i = first_element(); i < size; i += element_stride()) {
    const int count = up_to_four(size - i);
    if (a.accumulate)
      load4(a.y, i, count, sum);
    else
      load4(a.inputs[0], i, count, sum);
    for (int j = 0; j < 4 && !a.accumulate; ++j) sum[j] *= scale;
    if (a.bias.data) GPU_UNROLL
    for (int j = 0; j < 4; ++j) sum[j] += j < count ? load(a.bias, (i + j) % a.columns) : 0.0f;
    for (int input = a.accumulate ? 0 : 1; input < a.count; ++input) {
      load4(a.inputs[input], i, count, x);
      GPU_UNROLL
      for (int j = 0; j < 4; ++j) sum[j] += scale * x[j];
    }
    store4(a.y, i, count, sum);
  }
}

// Four elements of one run, which share a random block where the run begins on one.
GPU_FUNCTION void kept_elements(const DropoutArgs& a, std::int64_t run, std::int64_t i, int count, bool* keep) {
  const std::int64_t sample = a.heads > 0 ? run / a.heads : run % a.samples;
  const std::int64_t place = a.first_place + (a.heads > 0 ? run % a.heads : run / a.samples);
  const std::uint64_t stream = stream_of_sample(a.key, a.first_sample + sample);
  const std::int64_t first = place * a.length + i;
  RandomWords words = random_words(a.seed, stream, static_cast<std::uint64_t>(first) / 4);
  for (int j = 0; j < count; ++j) {
    if (j > 0 && (first + j) % 4 == 0) words = random_words(a.seed, stream, static_cast<std::uint64_t>(first + j) / 4);
    keep[j] = words.word[(first + j) % 4] >= a.threshold;
  }
}

GPU_KERNEL dropout_forward(const DropoutArgs a) {
  const std::int64_t pieces = (a.length + 3) / 4;
  for (std::int64_t p = first_element() / 4; p < a.runs * pieces; p += element_stride() / 4) {
    const std::int64_t run = p / pieces, i = p % pieces * 4, at = run * a.length + i;
    const int count = up_to_four(a.length - i);
    bool keep[4];
    kept_elements(a, run, i, count, keep);
    for (int j = 0; j < count; ++j) {
      const float x = load(a.x, at + j) + (a.bias.data ? load(a.bias, i + j) : 0.0f);
      store(a.mask, at + j, keep[j] ? 1.0f : 0.0f);
      store(a.y, at + j, (a.skip.data ? load(a.skip, at + j) : 0.0f) + (keep[j] ? x * a.scale : 0.0f));
    }
  }
}

GPU_KERNEL dropout_backward(const DropoutArgs a) {
  const std::int64_t size = a.runs * a.length;
  float x[4], old[4] = {0, 0, 0, 0};
  for (std::int64_t i = first_element(); i < size; i += element_stride()) {
    const int count = up_to_four(size - i);
    load4(a.x, i, count, x);
    if (a.accumulate) load4(a.y, i, count, old);
    for (int j = 0; j < count; ++j) x[j] = old[j] + (load_flag(a.mask, i + j) ? x[j] * a.scale : 0.0f);
    store4(a.y, i, count, x);
  }
}

// Dimensions i and i + dim / 2 of a head are a pair; sign -1 turns back.
GPU_KERNEL rotate(const RopeArgs a) {
  const std::int64_t half = a.dim / 2, pairs = a.rotated / 2, rest = a.width - a.rotated, work = pairs + rest;
  for (std::int64_t n = first_element() / 4; n < a.rows * work; n += element_stride() / 4) {
    const std::int64_t row = n / work, p = n % work, at = row * a.width;
    if (p >= pairs) {
      const std::int64_t i = at + a.rotated + p - pairs;
      store(a.y, i, old_value(a.accumulate, a.y, i) + load(a.x, i));
      continue;
    }
    const std::int64_t i = p % half, first = at + p / half * a.dim + i, second = first + half;
    const std::int64_t angle = row / a.samples * a.dim + i;
    const float c = load(a.table, angle), s = a.sign * load(a.table, angle + half);
    const float x = load(a.x, first), y = load(a.x, second);
    store(a.y, first, old_value(a.accumulate, a.y, first) + (x * c - y * s));
    store(a.y, second, old_value(a.accumulate, a.y, second) + (y * c + x * s));
  }
}

GPU_KERNEL cast_array(const CastArgs a) {
  float x[4];
  for (std::int64_t i = first_element(); i < a.count; i += element_stride()) {
    const int count = up_to_four(a.count - i);
    load4(a.x, i, count, x);
    store4(a.y, i, count, x);
  }
}

// Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2; eps outside the root as PyTorch.
// With a dynamic loss scale: the factors of this step, those skipped not counted.
GPU_FUNCTION UpdateArgs in_state(UpdateArgs a) {
  if (!a.state.data) return a;
  const double steps = static_cast<double>(a.steps) - static_cast<double>(load(a.state, 3));
  a.gradient_scale /= scale_of_update(a.state);
  if (!a.variance.data) return a;
  a.step = static_cast<float>(a.rate / (1 - pow(a.betas[0], steps)));
  a.root = static_cast<float>(1 / sqrt(1 - pow(a.betas[1], steps)));
  return a;
}

GPU_KERNEL update_adam(const UpdateArgs given) {
  if (skips_update(given.state)) return;
  const UpdateArgs a = in_state(given);
  const View& exact = a.master.data ? a.master : a.value;
  float g[4], m[4], v[4], p[4];
  for (std::int64_t i = first_element(); i < a.count; i += element_stride()) {
    const int count = up_to_four(a.count - i);
    load4(a.gradient, i, count, g);
    load4(a.momentum, i, count, m);
    load4(a.variance, i, count, v);
    load4(exact, i, count, p);
    for (int j = 0; j < count; ++j) {
      const float x = g[j] * a.gradient_scale + a.decay * p[j];
      m[j] = a.beta1 * m[j] + a.rest1 * x;
      v[j] = a.beta2 * v[j] + a.rest2 * x * x;
      p[j] = a.keep * p[j] - a.step * m[j] / (sqrtf(v[j]) * a.root + a.eps);
    }
    store4(a.momentum, i, count, m);
    store4(a.variance, i, count, v);
    store4(a.value, i, count, p);
    if (a.master.data) store4(a.master, i, count, p);
  }
}

GPU_KERNEL update_sgd(const UpdateArgs given) {
  if (skips_update(given.state)) return;
  const UpdateArgs a = in_state(given);
  const View& exact = a.master.data ? a.master : a.value;
  for (std::int64_t i = first_element() / 4; i < a.count; i += element_stride() / 4) {
    const float p = load(exact, i), g = load(a.gradient, i) * a.gradient_scale + a.decay * p;
    const float v = a.momentum.data ? a.beta1 * load(a.momentum, i) + g : g;
    if (a.momentum.data) store(a.momentum, i, v);
    store(a.value, i, p - a.step * v);
    if (a.master.data) store(a.master, i, p - a.step * v);
  }
}

// Clipping by the norm of all gradients (Pascanu et al. 2013); gradients carry the loss scale, so their norm does too.
GPU_KERNEL scale_clipped(const ScaleArgs a) {
  if (skips_update(a.state)) return;
  const double norm = sqrt(static_cast<double>(load(a.square, 0))) / (a.loss_scale * scale_of_update(a.state));
  if (!(norm > a.limit)) return;
  const float factor = static_cast<float>(a.limit / norm);
  for (std::int64_t i = first_element() / 4; i < a.x.elements; i += element_stride() / 4) store(a.x, i, load(a.x, i) * factor);
}

// Sums of 16-bit numbers are taken in fp32 and rounded once.
GPU_KERNEL reduce_peers(const ReduceArgs a) {
  float sum[4], x[4];
  for (std::int64_t n = first_element(); n < a.count; n += element_stride()) {
    const std::int64_t i = a.first + n;
    const int count = up_to_four(a.count - n);
    load4(a.from[0], i, count, sum);
    for (int s = 1; s < a.sources; ++s) {
      load4(a.from[s], i, count, x);
      for (int j = 0; j < count; ++j) sum[j] = a.fold == Fold::Max ? fmaxf(sum[j], x[j]) : sum[j] + x[j];
    }
    if (a.fold == Fold::Mean)
      for (int j = 0; j < count; ++j) sum[j] /= static_cast<float>(a.sources);
    for (int t = 0; t < a.targets; ++t) {
      for (int j = 0; j < 4; ++j) x[j] = sum[j];
      if (a.accumulate) {
        float old[4];
        load4(a.to[t], i, count, old);
        for (int j = 0; j < count; ++j) x[j] += old[j];
      }
      store4(a.to[t], i, count, x);
    }
  }
}

}  // namespace foreshard::gpu
