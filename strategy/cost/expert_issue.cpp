#include "strategy/cost/expert_issue.h"

namespace foreshard {

template <class Op>
static bool computes(const Segment& segment) {
  return std::ranges::any_of(segment.instructions, [](const Instruction& run) {
    const auto* what = std::get_if<Compute>(&run.what);
    return what && is<Op>(what->op);
  });
}

bool has_experts(const Segment& segment) { return computes<ops::GroupedMatMul>(segment); }

double issued_kernels(const FrameworkPreset& preset, const Compute& what) {
  const double kernels = style_of(preset, what).kernels;
  if (!preset.experts.each_expert || !is<ops::GroupedMatMul>(what.op)) return kernels;
  const Shape& shape = what.shapes.front();
  return kernels * static_cast<double>(shape.dims[0]) * (shape.dtype == DType::F8 ? preset.experts.eight_bit_kernels : 1.0);
}

Seconds issue_time(const FrameworkPreset& preset, const Compute& what, bool experts) {
  const bool of_experts = is<ops::Route, ops::Dispatch, ops::Combine, ops::SendOnce, ops::GroupedMatMul>(what.op);
  const Seconds each = !experts ? preset.host.per_kernel : of_experts ? preset.experts.per_kernel : preset.experts.per_operator;
  return each * issued_kernels(preset, what);
}

double further_kernels(const FrameworkPreset& preset, const Compute& what) {
  const double own = style_of(preset, what).kernels - 1;
  if (!preset.experts.each_expert || !is<ops::GroupedMatMul>(what.op)) return own;
  const Shape& shape = what.shapes.front();
  return shape.dtype == DType::F8 ? own + static_cast<double>(shape.dims[0]) * (preset.experts.eight_bit_kernels - 1) : own;
}

std::optional<PartOfExperts> part_of_experts(const FrameworkPreset& preset, const Compute& what) {
  if (!preset.experts.each_expert || !is<ops::GroupedMatMul>(what.op)) return {};
  const std::int64_t experts = what.shapes.front().dims[0];
  if (experts <= kStreams) return {};
  const double times = static_cast<double>(experts) / static_cast<double>(kStreams);
  PartOfExperts part = {.what = what, .times = times};
  part.what.shapes.front().dims[0] = kStreams;
  part.what.flops = {what.flops.value / times};
  part.what.traffic = {static_cast<std::int64_t>(static_cast<double>(what.traffic.value) / times)};
  return part;
}

bool waits_for_counts(const FrameworkPreset& preset, const Compute& what) {
  const auto* dispatch = std::get_if<ops::Dispatch>(&what.op);
  return preset.experts.waits_for_counts && dispatch && dispatch->capacity == 0 &&
         (what.phase == Phase::Forward || what.phase == Phase::Recompute);
}

}  // namespace foreshard
