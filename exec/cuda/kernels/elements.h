// Element-wise kernels: activations, sums, casts, reductions over ranks.
// References: exec/host/host_activation.cpp, host_add.cpp; exec/arithmetic/host_convert.cpp, host_reduce.cpp.
#pragma once

#include "exec/cuda/kernels/loss_scale.h"
#include "exec/cuda/kernels/packs.h"

namespace foreshard::gpu {

// GELU in tanh form (Hendrycks and Gimpel 2016; GPT-2) is x sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3). For relu, tanh and the cap,
// curve_slope takes the result of the forward instead of x. `cap`: ActivationArgs::cap.
GPU_FUNCTION float gelu(float x) { return x * sigmoid(1.5957691216057307f * x * (1.0f + 0.044715f * x * x)); }
GPU_FUNCTION float gelu_slope(float x) {
  const float s = sigmoid(1.5957691216057307f * x * (1.0f + 0.044715f * x * x));
  return s + x * s * (1.0f - s) * 1.5957691216057307f * (1.0f + 3 * 0.044715f * x * x);
}
GPU_FUNCTION float curve_value(Curve curve, float x, float cap) {
  switch (curve) {
    case Curve::Gelu: return gelu(x);
    case Curve::Relu: return x > 0 ? x : 0.0f;
    case Curve::Tanh: return tanhf(x);
    case Curve::Cap: return cap * tanhf(x * (1.0f / cap));
    case Curve::SwiGlu:
    case Curve::GeGlu:
    case Curve::ClampedSwiGlu: break;  // gated_value
  }
  return 0;
}
GPU_FUNCTION float curve_slope(Curve curve, float x, float cap) {
  switch (curve) {
    case Curve::Gelu: return gelu_slope(x);
    case Curve::Relu: return x > 0 ? 1.0f : 0.0f;
    case Curve::Tanh: return 1.0f - x * x;
    case Curve::Cap: {
      const float tanh = x * (1.0f / cap);
      return 1.0f - tanh * tanh;
    }
    case Curve::SwiGlu:
    case Curve::GeGlu:
    case Curve::ClampedSwiGlu: break;  // gated_slopes
  }
  return 0;
}

// Gated: SwiGLU silu(gate) up; GeGLU gelu(gate) up; that of gpt-oss (u + 1) g sigmoid(1.702 g), g = min(gate, 7), u = up within +-7.
GPU_FUNCTION float gated_value(Curve curve, float gate, float up) {
  if (curve == Curve::SwiGlu) return gate * sigmoid(gate) * up;
  if (curve == Curve::GeGlu) return gelu(gate) * up;
  const float g = fminf(gate, 7.0f), u = fminf(fmaxf(up, -7.0f), 7.0f);
  return (u + 1.0f) * g * sigmoid(1.702f * g);
}
struct GatedSlopes {
  float gate, up;
};
GPU_FUNCTION GatedSlopes gated_slopes(Curve curve, float gate, float up) {
  if (curve == Curve::SwiGlu) {
    const float s = sigmoid(gate), silu = gate * s;
    return {up * (s + silu * (1.0f - s)), silu};
  }
  if (curve == Curve::GeGlu) return {up * gelu_slope(gate), gelu(gate)};
  const float g = fminf(gate, 7.0f), u = fminf(fmaxf(up, -7.0f), 7.0f), s = sigmoid(1.702f * g);
  return {gate > 7.0f ? 0.0f : (u + 1.0f) * (s + 1.702f * g * s * (1.0f - s)), fabsf(up) > 7.0f ? 0.0f : g * s};
}

// Rows of x for a gated curve are [gate | up].
// Reads 2 bytes and writes 2 per element in bf16 (gated: reads 4); bound by memory.
template <Type type, Curve curve>
GPU_FUNCTION void activation_forward_packs(const ActivationArgs& a) {
  constexpr int n = kPack<type>;
  const int size = static_cast<int>(a.rows * a.columns), columns = static_cast<int>(a.columns);
  for (int i = first_pack<n>(); i < size; i += pack_stride<n>()) {
    float x[n], up[n];
    const int at = is_gated(curve) ? i + i / columns * columns : i;
    load_pack<type>(a.x, at, x);
    if constexpr (is_gated(curve)) load_pack<type>(a.x, at + columns, up);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) {
      if constexpr (is_gated(curve))
        x[j] = gated_value(curve, x[j], up[j]);
      else
        x[j] = curve_value(curve, x[j], a.cap);
    }
    store_pack<type>(a.y, i, x);
  }
}

// Reads 4 bytes and writes 2 per element in bf16 (gated: 6 and 4); with `accumulate` it also reads what it writes; bound by memory.
template <Type type, Curve curve>
GPU_FUNCTION void activation_backward_packs(const ActivationArgs& a) {
  constexpr int n = kPack<type>;
  const int size = static_cast<int>(a.rows * a.columns), columns = static_cast<int>(a.columns);
  for (int i = first_pack<n>(); i < size; i += pack_stride<n>()) {
    float x[n], dy[n], old[n], up[n], old_up[n];
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] = 0, old_up[j] = 0;
    const int at = is_gated(curve) ? i + i / columns * columns : i;
    load_pack<type>(a.dy, i, dy);
    load_pack<type>(a.x, at, x);
    if (a.accumulate) load_pack<type>(a.y, at, old);
    if constexpr (is_gated(curve)) {
      load_pack<type>(a.x, at + columns, up);
      if (a.accumulate) load_pack<type>(a.y, at + columns, old_up);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) {
        const GatedSlopes slopes = gated_slopes(curve, x[j], up[j]);
        old[j] += dy[j] * slopes.gate, old_up[j] += dy[j] * slopes.up;
      }
      store_pack<type>(a.y, at + columns, old_up);
    } else {
      GPU_UNROLL
      for (int j = 0; j < n; ++j) old[j] += dy[j] * curve_slope(curve, x[j], a.cap);
    }
    store_pack<type>(a.y, at, old);
  }
}

// activation_packs runs the version with packs if all arrays have one type and rows are whole packs; else it returns false.
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
    CURVE(Curve::GeGlu)
    CURVE(Curve::ClampedSwiGlu)
    CURVE(Curve::Cap)
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
  float x[4] = {};
  for (std::int64_t i = first_element(); i < size; i += element_stride()) {
    const int count = up_to_four(size - i);
    if (is_gated(a.curve)) {
      GPU_UNROLL
      for (int j = 0; j < 4; ++j) {
        if (j >= count) break;
        const std::int64_t row = (i + j) / a.columns, at = (i + j) + row * a.columns;
        x[j] = gated_value(a.curve, load(a.x, at), load(a.x, at + a.columns));
      }
    } else {
      load4(a.x, i, count, x);
      GPU_UNROLL
      for (int j = 0; j < 4; ++j) x[j] = curve_value(a.curve, x[j], a.cap);
    }
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
    if (is_gated(a.curve)) {
      GPU_UNROLL
      for (int j = 0; j < 4; ++j) {
        if (j >= count) break;
        const std::int64_t row = (i + j) / a.columns, gate_at = (i + j) + row * a.columns, up_at = gate_at + a.columns;
        const GatedSlopes slopes = gated_slopes(a.curve, load(a.x, gate_at), load(a.x, up_at));
        store(a.y, gate_at, old_value(a.accumulate, a.y, gate_at) + dy[j] * slopes.gate);
        store(a.y, up_at, old_value(a.accumulate, a.y, up_at) + dy[j] * slopes.up);
      }
      continue;
    }
    load4(a.x, i, count, x);
    if (a.accumulate) load4(a.y, i, count, old);
    GPU_UNROLL
    for (int j = 0; j < 4; ++j) x[j] = old[j] + dy[j] * curve_slope(a.curve, x[j], a.cap);
    store4(a.y, i, count, x);
  }
}

// Reads 2 bytes per element and input in bf16, writes 2; bound by memory.
template <Type type>
GPU_FUNCTION void add_packs(const AddArgs& a) {
  constexpr int n = kPack<type>;
  const float scale = a.scale * scale_of_backward(a.state);
  const int size = static_cast<int>(a.rows * a.columns), columns = static_cast<int>(a.columns);
  for (int i = first_pack<n>(); i < size; i += pack_stride<n>()) {
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
  RUN_BODY(type, add_packs, a);
  return true;
}

// In the order of the host code: the first input, the bias, then the other inputs.
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

// y = x in another number format. From fp32 to bf16 it reads 4 bytes and writes 2 per element; bound by memory.
template <Type from, Type to>
GPU_FUNCTION void cast_packs(const CastArgs& a) {
  const std::int64_t count = a.count - kWidest + 1;
  for (std::int64_t i = first_pack<kWidest, std::int64_t>(); i < count; i += pack_stride<kWidest, std::int64_t>()) {
    float x[kWidest];
    load_pack<from, kWidest>(a.x, i, x);
    store_pack<to, kWidest>(a.y, i, x);
  }
}
// Returns the number of elements that were processed with packs: all whole packs, or 0.
GPU_FUNCTION std::int64_t cast_by_packs(const CastArgs& a) {
  if (!on_pack_border(a.x) || !on_pack_border(a.y)) return 0;
  const Type from = a.x.type, to = a.y.type;
  if (from == Type::F32 && to == Type::BF16)
    cast_packs<Type::F32, Type::BF16>(a);
  else if (from == Type::BF16 && to == Type::F32)
    cast_packs<Type::BF16, Type::F32>(a);
  else if (from == Type::F32 && to == Type::F16)
    cast_packs<Type::F32, Type::F16>(a);
  else if (from == Type::F16 && to == Type::F32)
    cast_packs<Type::F16, Type::F32>(a);
  else
    return 0;
  return a.count - a.count % kWidest;
}

GPU_KERNEL cast_array(const CastArgs a) {
  const std::int64_t done = cast_by_packs(a);
  for (std::int64_t i = done + flat_thread(); i < a.count; i += flat_threads()) store(a.y, i, load(a.x, i));
}

GPU_FUNCTION float folded(Fold fold, float sum, float x) { return fold == Fold::Max ? fmaxf(sum, x) : sum + x; }

// 16-bit numbers are summed in fp32 and rounded once. Per element in bf16, it reads 2 bytes of each source and writes 2 to each target;
// bound by NVLink.
template <Type type>
GPU_FUNCTION void reduce_packs(const ReduceArgs& a) {
  constexpr int n = kPack<type>;
  const std::int64_t count = a.count - n + 1, from = a.first;
  const float over = a.fold == Fold::Mean ? static_cast<float>(a.sources) : 1.0f;
  for (std::int64_t p = first_pack<n, std::int64_t>(); p < count; p += pack_stride<n, std::int64_t>()) {
    const std::int64_t i = from + p;
    float sum[n], x[n];
    load_pack<type>(a.from[0], i, sum);
    for (int s = 1; s < a.sources; ++s) {
      load_pack<type>(a.from[s], i, x);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) sum[j] = folded(a.fold, sum[j], x[j]);
    }
    GPU_UNROLL
    for (int j = 0; j < n; ++j) sum[j] /= over;
    for (int t = 0; t < a.targets; ++t) {
      GPU_UNROLL
      for (int j = 0; j < n; ++j) x[j] = 0;
      if (a.accumulate) load_pack<type>(a.to[t], i, x);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) x[j] += sum[j];
      store_pack<type>(a.to[t], i, x);
    }
  }
}
GPU_FUNCTION std::int64_t reduce_by_packs(const ReduceArgs& a) {
  const Type type = a.from[0].type;
  if (!has_packs(type) || a.first % pack_of(type) != 0) return 0;
  for (int s = 0; s < a.sources; ++s)
    if (!packed(a.from[s], type)) return 0;
  for (int t = 0; t < a.targets; ++t)
    if (!packed(a.to[t], type)) return 0;
  RUN_BODY(type, reduce_packs, a);
  return a.count - a.count % pack_of(type);
}

GPU_KERNEL reduce_peers(const ReduceArgs a) {
  for (std::int64_t i = a.first + reduce_by_packs(a) + flat_thread(); i < a.first + a.count; i += flat_threads()) {
    float sum = load(a.from[0], i);
    for (int s = 1; s < a.sources; ++s) sum = folded(a.fold, sum, load(a.from[s], i));
    if (a.fold == Fold::Mean) sum /= static_cast<float>(a.sources);
    for (int t = 0; t < a.targets; ++t) store(a.to[t], i, old_value(a.accumulate, a.to[t], i) + sum);
  }
}

}  // namespace foreshard::gpu
