#include "strategy/loss_scale.h"

#include <cmath>
#include <cstdio>

#include "core/error.h"

namespace foreshard {

static bool scales(const Compute& what) {
  switch (what.op) {
    case Op::CrossEntropy:
    case Op::SumOfSquares: return what.phase == Phase::InputGrad;
    case Op::ClipScale:
    case Op::Adam:
    case Op::Sgd: return true;
    case Op::MatMul:
    case Op::Attention:
    case Op::Softmax:
    case Op::Norm:
    case Op::Activation:
    case Op::Bias:
    case Op::Dropout:
    case Op::Add:
    case Op::Rope:
    case Op::Embedding:
    case Op::Conv2d:
    case Op::BatchNorm:
    case Op::MaxPool:
    case Op::AvgPool:
    case Op::GradNorm:
    case Op::Cast:
    case Op::Zero:
    case Op::Encode:
    case Op::Decode: return false;
  }
  return false;
}

Plan with_loss_scale(Plan plan, double scale) {
  char word[64];
  std::snprintf(word, sizeof word, "loss_scale=%.17g", scale);
  if (!std::isfinite(scale) || scale <= 0) throw Error("plan", "loss scale", word + 11, "a positive number");
  if (scale == 1) return plan;
  for (Segment& segment : plan.segments)
    for (Instruction& instruction : segment.instructions) {
      auto* what = std::get_if<Compute>(&instruction.what);
      if (!what || !scales(*what)) continue;
      FS_ASSERT(what->attributes.find("loss_scale=") == std::string::npos);
      // In front: a group's name, which may have spaces, ends the attributes.
      what->attributes = word + (what->attributes.empty() ? "" : " " + what->attributes);
    }
  return plan;
}

}  // namespace foreshard
