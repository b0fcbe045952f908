#include "strategy/cost/autograd_cost.h"

#include <algorithm>

namespace foreshard {

namespace {

Bytes made(DType type) { return size_of(is_code(type) ? DType::BF16 : type); }  // of an element of a gradient

}  // namespace

Bytes summed_bytes(const FrameworkPreset& preset, const Compute& what) {
  if (!preset.styles.sums_gradients || !what.accumulate || !ops::is_input_grad(what.phase) || what.shapes.empty()) return {};
  const std::vector<std::int64_t>& dims = what.shapes.front().dims;
  const bool product = is_matrix_product(what.op) && dims.size() == 4;
  if (!product && !is<ops::Norm>(what.op)) return {};
  return 2 * made(what.shapes.front().dtype) * (product ? dims[0] * dims[1] * dims[3] : dims[0] * dims[1]);
}

Bytes filled_bytes(const FrameworkPreset& preset, const Compute& what) {
  if (!preset.styles.fills_results || what.phase == Phase::WeightGrad || what.shapes.empty()) return {};
  const std::vector<std::int64_t>& dims = what.shapes.front().dims;
  const bool product = is_matrix_product(what.op) && dims.size() == 4;
  if (!product && !is<ops::Norm>(what.op)) return {};
  const std::int64_t columns = !product ? 1 : ops::is_input_grad(what.phase) ? dims[3] : dims[2];
  return made(what.shapes.front().dtype) * (dims[0] * dims[1] * columns);
}

Bytes added_bytes(const FrameworkPreset& preset, const Compute& what, const Instruction& run) {
  const bool table = is<ops::TokenEmbedding>(what.op);
  if (!preset.adds_gradients || (what.phase != Phase::WeightGrad && what.phase != Phase::Backward)) return {};
  if (!table && !is_matrix_product(what.op)) return {};
  const std::vector<std::int64_t>& dims = what.shapes.front().dims;
  const Bytes gradient = made(what.shapes.front().dtype) * (table ? dims[1] * dims[2] : dims[0] * dims[2] * dims[3]);
  const Bytes sum = run.writes.empty() ? gradient : run.writes.front().length.value_or(gradient);
  const Bytes filled = table ? gradient : Bytes{};
  return what.accumulate || sum > gradient ? filled + gradient + 2 * sum : filled;
}

Seconds gradient_loop(const FrameworkPreset& preset, const Compute& what, const Instruction& run, bool shards) {
  if (what.phase != Phase::WeightGrad && what.phase != Phase::Backward) return {};
  const int inputs = what.phase == Phase::Backward ? gradients(what.op) : 0;
  const double parameters = std::max(0, static_cast<int>(run.writes.size()) - inputs);
  const GradientLoop& loop = preset.host.gradient_loop;
  return preset.host.per_part.value_or(preset.host.per_kernel) * (parameters * (shards ? loop.shard : loop.whole));
}

bool updates_shards(const Role& role) {
  return std::ranges::any_of(role.buffers, [](const Buffer& buffer) {
    return std::ranges::any_of(buffer.holds,
                               [](const Shard& shard) { return shard.part == TensorPart::Momentum && !shard.flat_by.empty(); });
  });
}

Bytes unadded_traffic(const Compute& what, const Instruction& run) {
  const bool reads_sum = what.accumulate && !run.writes.empty() && run.writes.front().length;
  return reads_sum ? what.traffic - *run.writes.front().length : what.traffic;
}

}  // namespace foreshard
