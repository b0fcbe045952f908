// The parts of an iteration that runs can be learned from: which one an instruction of a plan belongs to, and its shape.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/ranks.h"
#include "core/profile/learned_costs.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Whether a collective moves parameters, gradients or optimizer states.
bool moves_state(const Role& role, const Instruction& instruction);
// Whether it lies between the operators of one micro-batch: activations of tensor and context ranks of one role.
bool lies_between_operators(const Plan& plan, const Role& role, const Instruction& instruction);

// Nothing for marks, copies, and collectives of so few bytes that they are latency alone (norms, loss scales).
std::optional<CostPart> part_of(const Plan& plan, const Role& role, const Instruction& instruction);

// Shapes say nothing about the numbers of layers, stages, micro-batches and replicas, so that runs of other models and other
// numbers of GPUs have them too:
//   layer, ends  words: framework, number format, attention; place: rows of a micro-batch (tokens), samples, hidden size, tp, head size
//   tensor       words: framework; place: tp, elements that are summed
//   gradients    words: framework; place: ranks of the group
//   update, transfer  words: framework
class PartShapes {
 public:
  PartShapes(const Plan& plan, const FrameworkPreset& preset);  // the plan must outlive it
  PartShape of(RoleId role, CostPart part, const Instruction& instruction) const;

 private:
  // What the first layer of a role says; all 1 where it has none.
  struct Layer {
    double rows = 1, samples = 1, hidden = 1, tp = 1, head = 1;
    std::string format = {}, attention = {};
    bool operator==(const Layer&) const = default;
  };
  Layer layer_of(const Role& role) const;
  const Plan& plan_;
  Ranks ranks_;
  std::string framework_;
  std::vector<Layer> layers_ = {};  // [role]
};

// Isolated costs that take `factor` times as long: before the first byte, and on the links.
Cost scaled(const Cost& cost, double factor);

}  // namespace foreshard
