// The state of a dynamic loss scale (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2; the rule and its constants are those of
// PyTorch's GradScaler). Every rank has it in its arena, in the block that `lower` calls "loss scale". All ranks compute it from the same
// gradient norm, so it is equal on all.
//
//   backward         multiplies the gradient of the loss by loss_scale * 2^exponent
//   overflow check   reads the norm of all gradients. If it is not finite, the updates of this step are skipped and the exponent is
//                    decremented. After `growth` consecutive steps with a finite norm, the exponent is incremented.
//   updates          divide gradients by loss_scale * 2^used, or do nothing if the step is skipped
#pragma once

#include <bit>
#include <cstdint>

#include "core/plan/plan.h"

namespace foreshard {

struct Operand;
struct OpArguments;

struct LossScaleState {  // the layout in memory; all zeros at the start of training
  float exponent = 0;    // for the next backward
  float used = 0;        // the exponent with which the gradients of this step were made
  float good = 0;        // consecutive steps with a finite norm
  float skipped = 0;     // number of skipped steps so far
  float skips = 0;       // 1: the updates of this step are skipped
  bool operator==(const LossScaleState&) const = default;
};
inline constexpr std::int64_t kLossScaleFloats = sizeof(LossScaleState) / sizeof(float);

LossScaleState read_loss_scale(const Operand& state);
void write_loss_scale(const LossScaleState& state, const Operand& into);
// The state after the overflow check of a step. `finite`: whether the norm of the gradients is finite. The exponent does not fall below
// `least`.
LossScaleState judged(LossScaleState state, bool finite, std::int64_t growth, double least);
// The arguments with loss_scale multiplied by 2^used for an update, 2^exponent for any other phase. For an update, the number of the
// optimizer step does not count skipped steps.
OpArguments with_loss_scale(OpArguments arguments, const LossScaleState& state, Phase phase);

}  // namespace foreshard
