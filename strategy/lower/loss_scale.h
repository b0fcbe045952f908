// Loss scaling (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2) as part of a plan: the first gradient is multiplied,
// clipping and the update divide. What lies between them keeps more of its small numbers in narrow formats.
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

// The plan with a constant loss scale, which it must not have yet. Throws Error unless `scale` is positive and finite.
Plan with_loss_scale(Plan plan, double scale);

// A dynamic one: it doubles after `growth` steps without an overflow and halves at one, and that step updates nothing. The
// numbers are the defaults of PyTorch's GradScaler.
struct DynamicLossScale {
  BufferId state = {};  // of every role: five fp32 numbers that judge_overflow writes
  double start = 65536;
  std::int64_t growth = 2000;  // steps
};
inline constexpr std::int64_t kLossScaleState = 5;  // fp32 numbers

// Lets every instruction that multiplies or divides by the scale read the state.
Plan with_dynamic_loss_scale(Plan plan, const DynamicLossScale& scale);
// Looks whether the square of the norm of all gradients is finite, and writes the state. On the compute stream, behind what sums the norm.
Instruction judge_overflow(BufferId norm, const DynamicLossScale& scale);

}  // namespace foreshard
