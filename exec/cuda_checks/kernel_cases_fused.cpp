// Cases of kernel fusion.
#include "exec/cuda_checks/case_list.h"

namespace foreshard::gpu {

namespace {

constexpr double kUnrounded = 1.2e-2;  // the host rounds intermediate results to 16 bits, the fused product does not

struct Sizes {
  std::int64_t rows = 0, hidden = 0, wide = 0;
};

Compute linear(Phase phase, std::int64_t rows, std::int64_t outputs, std::int64_t inputs, bool add = false) {
  return {.op = ops::MatMul{}, .phase = phase, .shapes = {{{1, rows, outputs, inputs}}}, .accumulate = add};
}
Compute gelu(Phase phase, const Sizes& s) {
  return {.op = ops::Activation{.function = Function::Gelu}, .phase = phase, .shapes = {{{s.rows, s.wide}}}};
}

// Arrays: x, w, bias, fc1, y.
FusedCase forward(const std::string& name, const Sizes& s, bool bias, DType dtype) {
  FusedCase made{.name = name, .tolerance = kUnrounded};
  std::uint64_t seed = 400;
  for (const std::int64_t size : {s.rows * s.hidden, s.wide * s.hidden, s.wide})
    made.arrays.push_back(random_array(size, seed++, dtype));
  for (int i = 0; i < 2; ++i) made.arrays.push_back(empty_array(s.rows * s.wide, dtype));
  std::vector<std::size_t> reads = {0, 1};
  if (bias) reads.push_back(2);
  made.parts = {{linear(Phase::Forward, s.rows, s.wide, s.hidden), reads, {3}}, {gelu(Phase::Forward, s), {3}, {4}}};
  return made;
}

// Arrays: d z, w2, fc1, x, d y, d fc1, d w1, d b1 ("d" is a gradient). `sums`: with the gradient of the bias; `add`: which is accumulated.
FusedCase backward(const std::string& name, const Sizes& s, bool sums, bool add, DType dtype, DType gradients) {
  FusedCase made{.name = name, .unwritten = 4, .tolerance = kUnrounded};
  std::uint64_t seed = 500;
  for (const std::int64_t size : {s.rows * s.hidden, s.wide * s.hidden, s.rows * s.wide, s.rows * s.hidden})
    made.arrays.push_back(random_array(size, seed++, dtype));
  for (int i = 0; i < 2; ++i) made.arrays.push_back(empty_array(s.rows * s.wide, dtype));
  for (const std::int64_t size : {s.wide * s.hidden, s.wide})
    made.arrays.push_back(add ? random_array(size, seed++, gradients) : empty_array(size, gradients));
  made.parts = {{linear(Phase::InputGrad, s.rows, s.hidden, s.wide), {0, 2, 1}, {4}}, {gelu(Phase::InputGrad, s), {4, 2}, {5}}};
  if (sums)
    made.parts.push_back({linear(Phase::WeightGrad, s.rows, s.wide, s.hidden, add), {5, 3}, {6, 7}});
  else
    made.arrays.resize(6);
  return made;
}

}  // namespace

std::vector<FusedCase> fused_cases(bool large) {
  const Sizes small = {24, 40, 64};
  std::vector<FusedCase> all = {forward("fused_gelu", small, true, DType::BF16),
                                forward("fused_gelu_fp16", small, true, DType::F16),
                                forward("fused_gelu_bare", small, false, DType::BF16),
                                backward("fused_gelu_grad", small, false, false, DType::BF16, DType::BF16),
                                backward("fused_gelu_grad_fp16", small, true, false, DType::F16, DType::F16),
                                backward("fused_gelu_grad_bias", small, true, false, DType::BF16, DType::BF16),
                                backward("fused_gelu_grad_bias_added", small, true, true, DType::BF16, DType::BF16),
                                backward("fused_gelu_grad_bias_fp32", small, true, true, DType::BF16, DType::F32)};
  if (!large) return all;
  const Sizes real = {1024, 768, 3072};
  all.push_back(forward("fused_gelu_large", real, true, DType::BF16));
  all.push_back(backward("fused_gelu_grad_bias_large", real, true, true, DType::BF16, DType::F32));
  return all;
}

}  // namespace foreshard::gpu
