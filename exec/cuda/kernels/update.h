// Optimizer steps and gradient clipping of flat arrays: eight elements at a time, and the remaining ones one by one.
// Reference: exec/host/host_optimizer.cpp.
#pragma once

#include "exec/cuda/kernels/loss_scale.h"
#include "exec/cuda/kernels/packs.h"

namespace foreshard::gpu {

struct StepNumbers {  // as in UpdateArgs; with a dynamic loss scale, computed without the steps that were skipped
  float gradient_scale, step, root;
};
GPU_FUNCTION StepNumbers step_numbers(const UpdateArgs& a) {
  if (!a.state.data) return {a.gradient_scale, a.step, a.root};
  const float scale = a.gradient_scale / scale_of_update(a.state);
  if (!a.variance.data) return {scale, a.step, a.root};
  const double steps = static_cast<double>(a.steps) - static_cast<double>(load(a.state, 3));
  return {scale, static_cast<float>(a.rate / (1 - pow(a.betas[0], steps))),
          static_cast<float>(1 / sqrt(1 - pow(a.betas[1], steps)))};
}

// One element of Adam (Kingma and Ba 2015, algorithm 1) or AdamW (Loshchilov and Hutter 2019, algorithm 2), with eps outside the square
// root as in PyTorch. Updates m and v, returns the new p.
GPU_FUNCTION float adam_element(const UpdateArgs& a, const StepNumbers& now, float g, float p, float& m, float& v) {
  float x = g * now.gradient_scale + a.decay * p;
  if (a.moments) {  // Tang et al. 2021, algorithm 1
    const float next = g * now.gradient_scale + a.rest1 * a.decay * p;
    x = (next - a.beta1 * m) / a.rest1;
    m = next;
  } else {
    m = a.beta1 * m + a.rest1 * x;
  }
  if (!a.frozen) v = a.beta2 * v + a.rest2 * x * x;
  return a.keep * p - now.step * m / (sqrtf(v) * now.root + a.eps);
}
GPU_FUNCTION float sgd_element(const UpdateArgs& a, const StepNumbers& now, float g, float p, float& m) {
  m = a.beta1 * m + (g * now.gradient_scale + a.decay * p);
  return p - now.step * m;
}

// Adam with bf16 values and gradients reads 14 bytes and writes 14 per element; in fp32 without master copy it reads 16 and writes 12;
// bound by memory. SGD has no variance, and reads and writes 4 bytes less; bound by memory.
template <bool adam, Type gradient, Type value>
GPU_FUNCTION void update_packs(const UpdateArgs& a, const StepNumbers& now) {
  constexpr int n = kWidest;
  const std::int64_t count = a.count - n + 1;
  const bool master = a.master.data;
  const View exact = {master ? a.master.data : a.value.data, a.count, Type::F32, true};
  for (std::int64_t i = first_pack<n, std::int64_t>(); i < count; i += pack_stride<n, std::int64_t>()) {
    float g[n], m[n], v[n], p[n];
    load_pack<gradient, n>(a.gradient, i, g);
    load_pack<Type::F32, n>(exact, i, p);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) m[j] = 0;
    if (a.momentum.data) load_pack<Type::F32, n>(a.momentum, i, m);
    if constexpr (adam) load_pack<Type::F32, n>(a.variance, i, v);
    GPU_UNROLL
    for (int j = 0; j < n; ++j)
      p[j] = adam ? adam_element(a, now, g[j], p[j], m[j], v[j]) : sgd_element(a, now, g[j], p[j], m[j]);
    if (a.momentum.data) store_pack<Type::F32, n>(a.momentum, i, m);
    if constexpr (adam) store_pack<Type::F32, n>(a.variance, i, v);
    store_pack<Type::F32, n>(exact, i, p);
    if (master) store_pack<value, n>(a.value, i, p);
  }
}

// Returns the number of elements that were processed with packs: all whole packs, or 0.
template <bool adam>
GPU_FUNCTION std::int64_t update_by_packs(const UpdateArgs& a, const StepNumbers& now) {
  const Type gradient = a.gradient.type, value = a.value.type;
  if (!packed(a.master, Type::F32) || !packed(a.momentum, Type::F32)) return 0;
  if (!packed(a.variance, Type::F32) || !on_pack_border(a.gradient) || !on_pack_border(a.value)) return 0;
  if (!a.master.data && value != Type::F32) return 0;
  if (gradient == Type::F32 && value == Type::F32)
    update_packs<adam, Type::F32, Type::F32>(a, now);
  else if (gradient == Type::F32 && value == Type::BF16)
    update_packs<adam, Type::F32, Type::BF16>(a, now);
  else if (gradient == Type::BF16 && value == Type::BF16)
    update_packs<adam, Type::BF16, Type::BF16>(a, now);
  else if (gradient == Type::F32 && value == Type::F16)
    update_packs<adam, Type::F32, Type::F16>(a, now);
  else if (gradient == Type::F16 && value == Type::F16)
    update_packs<adam, Type::F16, Type::F16>(a, now);
  else
    return 0;
  return a.count - a.count % kWidest;
}

template <bool adam>
GPU_FUNCTION void update_all(const UpdateArgs& a) {
  if (skips_update(a.state)) return;
  const StepNumbers now = step_numbers(a);
  for (std::int64_t i = update_by_packs<adam>(a, now) + flat_thread(); i < a.count; i += flat_threads()) {
    const float g = load(a.gradient, i), p = a.master.data ? load(a.master, i) : load(a.value, i);
    float m = a.momentum.data ? load(a.momentum, i) : 0.0f, v = adam ? load(a.variance, i) : 0.0f;
    const float next = adam ? adam_element(a, now, g, p, m, v) : sgd_element(a, now, g, p, m);
    if (a.momentum.data) store(a.momentum, i, m);
    if constexpr (adam) store(a.variance, i, v);
    store(a.value, i, next);
    if (a.master.data) store(a.master, i, next);
  }
}

GPU_KERNEL update_adam(const UpdateArgs a) { update_all<true>(a); }
GPU_KERNEL update_sgd(const UpdateArgs a) { update_all<false>(a); }

// Reads 2 bytes and writes 2 per element in bf16; bound by memory.
template <Type type>
GPU_FUNCTION void scale_packs(const View& array, std::int64_t count, float factor) {
  constexpr int n = kPack<type>;
  for (std::int64_t i = first_pack<n, std::int64_t>(); i < count - n + 1; i += pack_stride<n, std::int64_t>()) {
    float x[n];
    load_pack<type>(array, i, x);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) x[j] *= factor;
    store_pack<type>(array, i, x);
  }
}

// Clipping by the global norm of all gradients (Pascanu et al. 2013). The gradients still contain the loss scale, and so does their norm.
GPU_KERNEL scale_clipped(const ScaleArgs a) {
  if (skips_update(a.state)) return;
  const double norm = sqrt(static_cast<double>(load(a.square, 0))) / (a.loss_scale * scale_of_update(a.state));
  if (!(norm > a.limit)) return;
  const float factor = static_cast<float>(a.limit / norm);
  const std::int64_t count = a.x.elements;
  std::int64_t done = 0;
  if (has_packs(a.x.type) && on_pack_border(a.x)) {
    RUN_BODY(a.x.type, scale_packs, a.x, count, factor);
    done = count - count % pack_of(a.x.type);
  }
  for (std::int64_t i = done + flat_thread(); i < count; i += flat_threads()) store(a.x, i, load(a.x, i) * factor);
}

}  // namespace foreshard::gpu
