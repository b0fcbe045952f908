#include "strategy/cost/adapter_cost.h"

#include <algorithm>
#include <limits>

namespace foreshard {

namespace {

bool adapts(std::int64_t rank, const Shape& shape) { return shape.dims[2] == rank || shape.dims[3] == rank; }

}  // namespace

std::int64_t adapter_rank(const Plan& plan) {
  if (std::ranges::none_of(plan.tensors, &Tensor::frozen)) return 0;
  std::int64_t rank = std::numeric_limits<std::int64_t>::max();
  for (const Tensor& tensor : plan.tensors)
    if (!tensor.frozen && tensor.shape.size() == 2) rank = std::min({rank, tensor.shape[0], tensor.shape[1]});
  return rank == std::numeric_limits<std::int64_t>::max() ? 0 : rank;
}

Bytes adapter_bytes(const FrameworkPreset& preset, std::int64_t rank, const Compute& what) {
  if (rank == 0 || !is_matrix_product(what.op)) return {};
  const Shape& shape = what.shapes.front();
  if (!adapts(rank, shape)) return {};
  const bool first = shape.dims[2] == rank;
  const bool forward = what.phase == Phase::Forward || what.phase == Phase::Recompute;
  if (!forward && what.phase != Phase::InputGrad) return {};
  const AdapterPasses& passes = preset.styles.adapters;
  const double each =
      first ? (forward ? passes.input : passes.input_backward) : (forward ? passes.result : passes.result_backward);
  const std::int64_t elements = shape.dims[0] * shape.dims[1] * (first ? shape.dims[3] : shape.dims[2]);
  return {static_cast<std::int64_t>(each * static_cast<double>(elements))};
}

Bytes frozen_bytes(const FrameworkPreset& preset, std::int64_t rank, const Compute& what, const Gpu& gpu) {
  if (rank == 0 || !is_matrix_product(what.op)) return {};
  const Shape& shape = what.shapes.front();
  if (!is_code(shape.dtype) || adapts(rank, shape)) return {};
  const std::int64_t batch = shape.dims[0];
  if (what.phase == Phase::Forward || what.phase == Phase::Recompute) return {-2 * batch * shape.dims[1] * shape.dims[3]};
  const bool one_layout = gpu.architecture == "hopper" || gpu.architecture == "ada";
  if (what.phase == Phase::InputGrad && preset.styles.adapters.transposes_weights && one_layout)
    return {2 * batch * shape.dims[2] * shape.dims[3]};
  return {};
}

}  // namespace foreshard
