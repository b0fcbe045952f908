// Kernel and functions for the state of a dynamic loss scale, which is an array of the members of LossScaleState
// (exec/arithmetic/loss_scale_state.h). Reference: exec/host/host_optimizer.cpp.
#pragma once

#include "exec/cuda/kernels/words.h"

namespace foreshard::gpu {

GPU_FUNCTION float power_of_two(float exponent) { return ldexpf(1.0f, static_cast<int>(exponent)); }
GPU_FUNCTION float scale_of_backward(const View& state) { return state.data ? power_of_two(load(state, 0)) : 1.0f; }
GPU_FUNCTION float scale_of_update(const View& state) { return state.data ? power_of_two(load(state, 1)) : 1.0f; }
GPU_FUNCTION bool skips_update(const View& state) { return state.data && load(state, 4) != 0; }

// The overflow check (judged() in loss_scale_state.h); one thread does it. Accesses six numbers in all; bound by the time of a launch.
GPU_KERNEL judge_overflow(const JudgeArgs a) {
  if (thread() > 0) return;
  const float square = load(a.square, 0), exponent = load(a.state, 0);
  const bool finite = square - square == 0;
  const float good = finite ? load(a.state, 2) + 1 : 0.0f;
  const bool grows = finite && good >= a.growth;
  store(a.state, 1, exponent);
  store(a.state, 4, finite ? 0.0f : 1.0f);
  store(a.state, 0, finite ? exponent + (grows ? 1.0f : 0.0f) : fmaxf(exponent - 1, a.least));
  store(a.state, 2, grows ? 0.0f : good);
  if (!finite) store(a.state, 3, load(a.state, 3) + 1);
}

}  // namespace foreshard::gpu
