// What fine-tuning cannot be combined with: low-rank adapters, and sequences that are packed into rows. Internal to strategy/.
#pragma once

#include <optional>

#include "core/base/error.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// Nothing: the strategy has no adapters, or it can have them. `strategy`: with degrees and batch resolved.
std::optional<Infeasible> refuse_adapters(const Model& model, const Strategy& strategy);
// The same for packed sequences.
std::optional<Infeasible> refuse_packing(const Model& model, const Strategy& strategy);

}  // namespace foreshard
