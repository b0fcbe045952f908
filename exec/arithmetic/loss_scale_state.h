// The state of a dynamic loss scale (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2; the rule and its numbers are those
// of PyTorch's GradScaler): it lies in the arena of every rank, in the block that `lower` calls "loss scale", and every rank
// makes it from the same norm, so all have the same.
//
//   backward   multiplies by  loss_scale * 2^exponent
//   overflow   reads the norm of all gradients; not finite: this step's updates are skipped, exponent - 1;
//              `growth` steps in a row that were finite: exponent + 1
//   updates    divide by  loss_scale * 2^used, or do nothing
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "core/plan/plan.h"

namespace foreshard {

struct Operand;
struct OpArguments;

struct LossScaleState {  // as it lies in memory; zeros at the begin
  float exponent = 0;    // of the next backward
  float used = 0;        // of this step's gradients
  float good = 0;        // finite steps in a row
  float skipped = 0;     // steps, so far
  float skips = 0;       // 1: this step's updates do nothing
  bool operator==(const LossScaleState&) const = default;
};
inline constexpr std::int64_t kLossScaleFloats = sizeof(LossScaleState) / sizeof(float);

LossScaleState loss_scale_of(std::span<const double> numbers);  // in the order of the members
LossScaleState read_loss_scale(const Operand& state);
void write_loss_scale(const LossScaleState& state, const Operand& into);
// After the gradients of a step, whose norm is finite or not. The scale stays above 2^least times what it began with.
LossScaleState judged(LossScaleState state, bool finite, std::int64_t growth, double least);
// With the scale of the backward or of the update, and the number of the step without those skipped.
OpArguments with_loss_scale(OpArguments arguments, const LossScaleState& state, Phase phase);

}  // namespace foreshard
