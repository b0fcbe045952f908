// Residency of chunks of parameters (chunks.h) whose home is host memory, or that are sharded over ranks: decides which chunks stay on the
// device between their uses.
//   Gemini (hpcaitech/ColossalAI, colossalai/zero/gemini/placement_policy.py): a fixed share, or a budget
//   PatrickStar (Fang et al. 2021, arXiv 2108.05818; Tencent/PatrickStar, patrickstar/core/eviction_policy.py): a budget
// The gradient of a chunk is written over its parameters, so it takes no memory of its own. A chunk is released after its last use of the
// step, since its gradient goes to the processor that runs the optimizer.
#pragma once

#include <variant>

#include "core/base/error.h"
#include "strategy/residency/residency.h"

namespace foreshard {

// ---- a fixed share ----

// Chunks are brought on demand. Before each use, idle chunks are evicted in the order of the model until the remaining idle ones have at
// most `kept` elements. Gemini's static policy: kept = (1 - offload_param_frac) of all elements. With 0 every chunk is evicted before the
// next one is used: Gemini's "cpu" policy.
Residency fixed_share_residency(const std::vector<ParameterUnit>& chunks, const std::vector<UnitUse>& uses, std::int64_t kept);

// ---- a budget ----

enum class Evict : std::uint8_t {
  FarthestNextUse,  // the chunk whose next use is latest (Belady 1966): the fewest transfers, if all chunks have the same size
  InOrder           // the first in the order of the model: in a first step, before the order of uses is known
};

struct BudgetRule {
  ElementCurve budget = {};  // [moment]: the most elements of chunks on the device
  Evict evict = Evict::FarthestNextUse;
  // At each moment, how many of the chunks used next are brought early, if no chunk has to be evicted for them.
  int prefetch = 0;
  // Number of chunks, the first ones, that are on the device when the step begins, since they were updated there. A chunk that would be
  // evicted before its first use counts as absent.
  int there_at_start = 0;
};

// A chunk is brought on demand if it is not on the device; idle chunks are evicted only where the budget requires it. The result never
// takes more than the budget. Infeasible: a single chunk in use, or all chunks at the start, are larger than the budget of that moment.
std::variant<Residency, Infeasible> budget_residency(const std::vector<ParameterUnit>& chunks, const std::vector<UnitUse>& uses,
                                                     const BudgetRule& rule);

// [moment]: elements that a device has room for beside its other memory: (cap_ratio * device - the larger of others[moment] and
// others[moment + 1]) / element_bytes, not below 0. `others` [moment]: bytes that are no chunks, as measured in a first step. cap_ratio is
// 0.9 in Gemini's auto policy, 0.8 in PatrickStar.
ElementCurve traced_budget(Bytes device, double cap_ratio, const std::vector<Bytes>& others, std::int64_t element_bytes = 2);
// [moment]: the budget in that first step, `warmup_ratio` of the device. Gemini 0.2; PatrickStar 0.2, or 0.1 by its configuration file.
ElementCurve warmup_budget(Bytes device, double warmup_ratio, std::size_t moments, std::int64_t element_bytes = 2);

// How many chunks of optimizer states (12 bytes per element) PatrickStar keeps on the device:
//   0.8 (0.8 device - others_peak - parameter_chunks) / (12 chunk_elements), rounded down
// `parameter_chunks`: bytes of its 16-bit chunks; `others_peak`: peak of all other memory. patrickstar/core/memtracer/memtracer.py,
// update_margin_mem.
int optimizer_chunks_on_device(Bytes device, Bytes others_peak, Bytes parameter_chunks, std::int64_t chunk_elements);

}  // namespace foreshard
