// Predicts how much device memory a training framework allocates for a strategy, per pipeline rank: model states, activations as the
// framework keeps them, and its own buffers (strategy/cost/memory_traits.h). This differs from the arena of our own plan, which is laid out
// once, does not fragment and contains no library workspaces. Formulas and sources: docs/memory.md.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/memory_traits.h"

namespace foreshard {

// All in bytes.
struct RankAllocation {
  double statics = 0;      // allocated between two steps
  double activations = 0;  // the most that transformer layers keep for their backward at one time
  double peak = 0;         // the most that is allocated at one time during a step
  double reserved = 0;     // reserved from the device at that peak, fragmentation included
};
// Which memory of a framework exceeds the device's: none; the tensors themselves; or only what the allocator reserves beyond them.
enum class Shortage : std::uint8_t { None, Allocated, Reserved };

struct FrameworkAllocation {
  std::vector<RankAllocation> ranks = {};  // [pipeline rank]
  double outside = 0;                      // on every rank, outside the allocator: CUDA context, communication buffers
  double largest() const;                  // `reserved` + `outside` of the rank that needs most
  Shortage shortage(Bytes capacity) const;
};

// `strategy` need not be resolved; this resolves it. Infeasible: it cannot be resolved, or its shapes or layers cannot be split so. Whether
// it fits in memory is not checked.
std::variant<FrameworkAllocation, Infeasible> framework_allocation(const Model& model, const Cluster& cluster,
                                                                   const Strategy& strategy, const MemoryTraits& traits);

}  // namespace foreshard
