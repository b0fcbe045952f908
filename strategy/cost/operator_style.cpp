#include "strategy/cost/operator_style.h"

#include "strategy/kernels/op_cost.h"

namespace foreshard {

// Shape of a softmax: queries of all maps, keys of each.
static bool takes_maps(const SoftmaxMaps& fused, const Compute& softmax) {
  const std::vector<std::int64_t>& dims = softmax.shapes.front().dims;
  return dims[0] / dims[1] % fused.multiple == 0;
}

const OpStyle& style_of(const FrameworkPreset& preset, const Compute& what) {
  static const OpStyle fused;
  if (is<ops::Norm>(what.op)) return preset.styles.norm;
  if (const auto* rope = std::get_if<ops::Rope>(&what.op))
    return rope->scale != 1 && preset.styles.scaled_rope ? *preset.styles.scaled_rope : preset.styles.rope;
  if (const auto* activation = std::get_if<ops::Activation>(&what.op)) {
    const bool clamped = activation->function == ops::Activation::Function::ClampedSwiGlu;
    return clamped && preset.styles.clamped_activation ? *preset.styles.clamped_activation : preset.styles.activation;
  }
  if (const auto* softmax = std::get_if<ops::Softmax>(&what.op)) {
    if (!takes_maps(preset.styles.softmax_maps, what)) return preset.styles.softmax_maps.otherwise;
    return softmax->causal && preset.styles.causal_softmax ? *preset.styles.causal_softmax : preset.styles.softmax;
  }
  if (is<ops::Dropout, ops::Add>(what.op)) return preset.styles.residual;
  if (is<ops::Route>(what.op)) return preset.styles.route;
  if (is<ops::Dispatch>(what.op)) return preset.styles.dispatch;
  if (is<ops::Combine>(what.op)) return preset.styles.combine;
  if (is<ops::CrossEntropy>(what.op)) return preset.styles.cross_entropy;
  if (is<ops::Adam>(what.op) && preset.styles.narrow_optimizer && size_of(what.shapes.front().dtype) < size_of(DType::F32))
    return *preset.styles.narrow_optimizer;
  if (is<ops::Adam, ops::Sgd, ops::GradNorm, ops::ClipScale, ops::JudgeOverflow, ops::BalanceExperts>(what.op))
    return preset.styles.optimizer;
  return fused;
}

double joining_slowdown(const Gpu& gpu, double joins) { return unvectorized_slowdown(gpu, 4 * joins); }

double slowdown_of(const Gpu& gpu, const OpStyle& style, bool backward, double speed, double joins) {
  const KernelTraffic& traffic = backward && style.backward ? *style.backward : style.forward;
  const double others = traffic.all - traffic.copies - traffic.joined - traffic.unvectorized;
  return traffic.copies + traffic.joined * joining_slowdown(gpu, joins) +
         traffic.unvectorized * unvectorized_slowdown(gpu, traffic.result_bytes) + others / speed;
}

double slowdown_of(const Gpu& gpu, const FrameworkPreset& preset, const Compute& what) {
  const OpStyle& style = style_of(preset, what);
  const bool backward = what.phase == Phase::InputGrad || what.phase == Phase::Backward;
  const double speed = style.elementwise > 0 ? style.elementwise : preset.elementwise;
  return slowdown_of(gpu, style, backward, what.flops.value <= 0 ? speed : 1.0, preset.styles.joins);
}

}  // namespace foreshard
