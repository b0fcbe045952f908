// How a framework's kernels run an operator.
#pragma once

#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// How the preset runs an operator; matrix products and others without a style run as one fused kernel.
const OpStyle& style_of(const FrameworkPreset& preset, const Compute& what);

// Factor on the time of the operator's memory traffic, against a fused kernel at full bandwidth.
double slowdown_of(const FrameworkPreset& preset, const Compute& what);

}  // namespace foreshard
