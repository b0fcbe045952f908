// How a framework's kernels run an operator.
#pragma once

#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// How the preset runs an operator; matrix products and others without a style run as one fused kernel.
const OpStyle& style_of(const FrameworkPreset& preset, const Compute& what);

// Factor on the time of the operator's memory traffic, against a fused kernel at full bandwidth. `speed`: of kernels that are neither
// copies nor concatenations nor unvectorized, over full bandwidth. `joins`: OpStyles::joins.
double slowdown_of(const Gpu& gpu, const OpStyle& style, bool backward, double speed, double joins);
double slowdown_of(const Gpu& gpu, const FrameworkPreset& preset, const Compute& what);

// Times as long as streaming their bytes that concatenations in 16 bits take, 4 bytes a result.
double joining_slowdown(const Gpu& gpu, double joins);

}  // namespace foreshard
