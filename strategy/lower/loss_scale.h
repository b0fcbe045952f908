// Loss scaling (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2) as part of a plan: the gradient of the loss is multiplied by the
// scale; clipping and the update divide by it. This keeps small gradients from underflow in narrow formats.
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

// Adds a constant loss scale to a plan that has none. Throws Error unless `scale` is positive and finite.
Plan with_loss_scale(Plan plan, double scale);

// A dynamic loss scale doubles after `growth` steps without an overflow. At an overflow it halves, and that step updates nothing. `start`
// and `growth` are the defaults of PyTorch's GradScaler.
struct DynamicLossScale {
  BufferId state = {};         // a buffer of every role: five fp32 numbers that judge_overflow writes
  double start = 65536;        // the scale of the first step
  std::int64_t growth = 2000;  // steps
};
inline constexpr std::int64_t kLossScaleState = 5;  // length of the state, in fp32 numbers

// Lets every instruction that multiplies or divides by the scale read the state.
Plan with_dynamic_loss_scale(Plan plan, const DynamicLossScale& scale);
// The instruction that checks whether `norm`, the squared norm of all gradients, is finite, and writes the state. It runs on the compute
// stream; issue it after the sum of the norm.
Instruction judge_overflow(BufferId norm, const DynamicLossScale& scale);

}  // namespace foreshard
