#include "strategy/cost/operator_facts.h"

#include <algorithm>

namespace foreshard {

using Piece = ops::CrossEntropy::Piece;

std::int64_t loss_parts(const Plan& plan, const FrameworkPreset& preset, const Compute& what) {
  const auto* loss = std::get_if<ops::CrossEntropy>(&what.op);
  if (!preset.messages.gathers_logits || !loss || loss->piece == Piece::Whole) return 1;
  std::int64_t ranks = 1;
  for (const Axis& axis : plan.axes)
    if (axis.dense == DenseKind::Tensor) ranks *= axis.size;
  return ranks;
}

Bytes gathered_logits(const Plan& plan, const FrameworkPreset& preset, const Compute& what) {
  const auto* loss = std::get_if<ops::CrossEntropy>(&what.op);
  if (!preset.messages.gathers_logits || !loss || loss->piece != Piece::Max || what.phase != Phase::Forward) return {};
  const Shape& part = what.shapes.front();
  return size_of(part.dtype) * (part.dims[0] * part.dims[1] * loss_parts(plan, preset, what));
}

bool is_gated(const Operation& op) {
  using Function = ops::Activation::Function;
  const auto* activation = std::get_if<ops::Activation>(&op);
  return activation && (activation->function == Function::SwiGlu || activation->function == Function::GeGlu ||
                        activation->function == Function::ClampedSwiGlu);
}

template <class Says>
static bool any_compute(const Segment& segment, const Says& says) {
  return std::ranges::any_of(segment.instructions, [&](const Instruction& instruction) {
    const auto* what = std::get_if<Compute>(&instruction.what);
    return what && says(*what);
  });
}

bool has_phase(const Segment& segment, Phase phase) {
  return any_compute(segment, [phase](const Compute& what) { return what.phase == phase; });
}

bool recomputes_attention(const Segment& segment) {
  return any_compute(
      segment, [](const Compute& what) { return what.phase == Phase::Recompute && is<ops::Attention, ops::Softmax>(what.op); });
}

bool takes_batch(const Segment& segment) {
  return any_compute(segment, [](const Compute& what) {
    return what.phase == Phase::Forward && is<ops::TokenEmbedding, ops::CrossEntropy>(what.op);
  });
}

}  // namespace foreshard
