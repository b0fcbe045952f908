// What the allocator of a training framework holds of a strategy, per pipeline rank: model states, activations as the framework
// keeps them, and the buffers that it adds (strategy/cost/memory_traits.h). The arena of our own plan is another number: it is laid
// out once, never fragments and has no library inside. Formulas: docs/memory.md.
#pragma once

#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/memory_traits.h"

namespace foreshard {

// Bytes.
struct RankAllocation {
  double statics = 0;      // allocated between two steps
  double activations = 0;  // what transformer layers keep for their backward, when most of it is alive
  double peak = 0;         // the most that is allocated during a step
  double reserved = 0;     // taken from the device by then
};
struct FrameworkAllocation {
  std::vector<RankAllocation> ranks = {};  // by pipeline rank
  double outside = 0;                      // beside the allocator: context, communication buffers
  double largest() const;                  // on the device, of the rank that needs most
};

// The strategy may leave open what `resolve` decides. Refuses what `lower` refuses.
std::variant<FrameworkAllocation, Infeasible> framework_allocation(const Model& model, const Cluster& cluster,
                                                                   const Strategy& strategy, const MemoryTraits& traits);

}  // namespace foreshard
