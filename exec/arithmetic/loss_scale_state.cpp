#include "exec/arithmetic/loss_scale_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "exec/device/operand.h"

namespace foreshard {

LossScaleState read_loss_scale(const Operand& state) {
  LossScaleState read;
  std::memcpy(&read, state.data, sizeof read);
  return read;
}

void write_loss_scale(const LossScaleState& state, const Operand& into) { std::memcpy(into.data, &state, sizeof state); }

LossScaleState judged(LossScaleState state, bool finite, std::int64_t growth, double least) {
  state.used = state.exponent;
  state.skips = finite ? 0 : 1;
  if (!finite) {
    state.exponent = std::max(state.exponent - 1, static_cast<float>(least));
    state.good = 0;
    state.skipped += 1;
    return state;
  }
  state.good += 1;
  if (state.good < static_cast<float>(growth)) return state;
  state.good = 0;
  state.exponent += 1;
  return state;
}

OpArguments with_loss_scale(OpArguments arguments, const LossScaleState& state, Phase phase) {
  const bool updates = phase == Phase::Update;
  arguments.loss_scale = std::ldexp(arguments.loss_scale, static_cast<int>(updates ? state.used : state.exponent));
  if (updates) arguments.step -= static_cast<std::int64_t>(state.skipped);
  return arguments;
}

}  // namespace foreshard
