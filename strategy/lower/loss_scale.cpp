#include "strategy/lower/loss_scale.h"

#include <cmath>

#include "core/base/error.h"

namespace foreshard {

template <class Change>
static void change_scaling(Plan& plan, Change change) {
  for (Segment& segment : plan.segments)
    for (Instruction& instruction : segment.instructions)
      if (auto* what = std::get_if<Compute>(&instruction.what); what && takes_loss_scale(what->op, what->phase))
        change(instruction, *what);
}

static void scale_host_updates(Plan& plan, double scale) {
  for (Segment& segment : plan.segments)
    for (Instruction& instruction : segment.instructions)
      if (auto* what = std::get_if<HostCompute>(&instruction.what); what && takes_loss_scale(what->op, Phase::Update))
        what->loss_scale = scale;
}

Plan with_loss_scale(Plan plan, double scale) {
  if (!std::isfinite(scale) || scale <= 0) throw Error("plan", "loss scale", std::to_string(scale), "a positive number");
  // Losses are means over the samples of a run; the gradients of an update, over those of the update.
  const double updates = plan.updates;
  change_scaling(plan,
                 [&](Instruction&, Compute& what) { what.loss_scale = what.phase == Phase::Update ? scale : scale * updates; });
  scale_host_updates(plan, scale);
  return plan;
}

Plan with_dynamic_loss_scale(Plan plan, const DynamicLossScale& scale) {
  change_scaling(plan, [&](Instruction& instruction, Compute& what) {
    what.loss_scale = scale.start, what.dynamic_scale = true;
    instruction.reads.push_back({.buffer = scale.state});
  });
  return plan;
}

Instruction judge_overflow(BufferId norm, const DynamicLossScale& scale) {
  return {.name = "loss scale",
          .what = Compute{.op = ops::JudgeOverflow{.growth = scale.growth, .start = scale.start},
                          .phase = Phase::Update,
                          .shapes = {{{1}, DType::F32}},
                          .flops = {1},
                          .traffic = size_of(DType::F32) * (kLossScaleState + 1)},
          .stream = {0},
          .reads = {{.buffer = norm}},
          .writes = {{.buffer = scale.state}}};
}

}  // namespace foreshard
