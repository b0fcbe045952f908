// Loss scaling (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2) as part of a plan: the first gradient is multiplied,
// clipping and the update divide. What lies between them keeps more of its small numbers in narrow formats.
#pragma once

#include "core/plan.h"

namespace foreshard {

// The plan with a constant loss scale, which it must not have yet. Throws Error unless `scale` is positive and finite.
Plan with_loss_scale(Plan plan, double scale);

}  // namespace foreshard
