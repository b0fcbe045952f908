// The parts into which learning from runs divides an iteration (CostPart): which part an instruction of a plan belongs to, and the shape of
// that part.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/ranks.h"
#include "core/profile/learned_costs.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Whether the instruction reads or writes parameters, gradients or optimizer states.
bool moves_state(const Role& role, const Instruction& instruction);
// Whether it is a collective between the operators of one micro-batch: it moves activations among tensor or context ranks of one role.
bool lies_between_operators(const Plan& plan, const Role& role, const Instruction& instruction);

// Of an instruction, seconds: isolated, if computes wait for it; of the host; of its bytes on the wire.
struct InstructionSeconds {
  double alone = 0, issue = 0, wire = 0;
};

// A block of a segment: its buffer, and its slot as a number or as a parameter.
using BlockPlace = std::pair<std::int32_t, std::pair<std::size_t, std::int32_t>>;
BlockPlace place_of(const Use& use);

// Empty for marks, copies, and collectives below 64 KiB, which are nothing but latency (norms, loss scales).
std::optional<CostPart> part_of(const Plan& plan, const Role& role, const Instruction& instruction);

// The shapes of the parts. They leave out the numbers of layers, stages, micro-batches and replicas, so that runs of other models and on
// other numbers of GPUs have the same shapes. The numbers of PartShape::place are base-2 logarithms:
//   layer, ends  words: framework, number format, attention; place: rows of a micro-batch (tokens), samples, hidden size, tp, head size
//   tensor       words: framework; place: tp, rows times hidden size
//   gradients    words: framework; place: ranks of the group
//   update, transfer  words: framework
class PartShapes {
 public:
  PartShapes(const Plan& plan, const FrameworkPreset& preset);  // the plan must outlive it
  PartShape of(RoleId role, CostPart part, const Instruction& instruction) const;

 private:
  // Sizes of the first layer of a role; all 1 where it has none.
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

// The cost times `factor`: its time before the first byte, and its time on the links.
Cost scaled(const Cost& cost, double factor);

}  // namespace foreshard
