// Residency of chunks whose home is host memory (or that are cut over ranks): which chunks stay on the device between their uses.
//   Gemini (hpcaitech/ColossalAI, colossalai/zero/gemini/placement_policy.py): a fixed share, or a budget
//   PatrickStar (Fang et al. 2021, arXiv 2108.05818; Tencent/PatrickStar, patrickstar/core/eviction_policy.py): a budget
// The gradient of a chunk is written over its parameters, so there is no gradient buffer. After its last use of the step a chunk leaves: its
// gradient goes to where the optimizer runs.
#pragma once

#include <variant>

#include "core/base/error.h"
#include "strategy/residency/residency.h"

namespace foreshard {

// ---- a fixed share ----

// Chunks come on demand. Before the used chunk is brought, idle ones leave, in the order of the model, until those that stay have at most
// `kept` elements. Gemini static: kept = (1 - offload_param_frac) of all. 0: every chunk leaves before the next use, "gemini-cpu".
Residency fixed_share_residency(const std::vector<ParameterUnit>& chunks, const std::vector<UnitUse>& uses, std::int64_t kept);

// ---- a budget ----

enum class Evict : std::uint8_t {
  FarthestNextUse,  // Belady 1966: of equal chunks, no other choice makes fewer transfers
  InOrder           // of the model: what a first step does, before it knows the order of uses
};

struct BudgetRule {
  ElementCurve budget = {};  // at each moment
  Evict evict = Evict::FarthestNextUse;
  int prefetch = 0;  // the next chunks, this many, are brought early where nothing has to leave for them
  // The first chunks, this many, were updated on the device and are there when the step begins. One that would have to leave before its
  // first use counts as not there.
  int there_at_start = 0;
};

// The used chunk is brought on demand unless it is there; idle chunks leave only where the budget asks for it. The result never takes more
// than the budget. Infeasible: a used chunk alone, or what is there at the start, is larger than the budget of its moment.
std::variant<Residency, Infeasible> budget_residency(const std::vector<ParameterUnit>& chunks, const std::vector<UnitUse>& uses,
                                                     const BudgetRule& rule);

// What a device leaves to chunks: at each moment `cap_ratio` of its memory less what else is there at this moment and the next one, as a
// first step measured it. Gemini auto: 0.9, PatrickStar: 0.8. Not below 0.
ElementCurve traced_budget(Bytes device, double cap_ratio, const std::vector<Bytes>& others, std::int64_t element_bytes = 2);
// In that first step: `warmup_ratio` of the device at every moment. Gemini 0.2; PatrickStar 0.2, or 0.1 by its configuration file.
ElementCurve warmup_budget(Bytes device, double warmup_ratio, std::size_t moments, std::int64_t element_bytes = 2);

// How many chunks of optimizer states (12 bytes per element) PatrickStar keeps on the device: 0.8 of what 0.8 of the device holds beside
// its 16-bit chunks and the peak of everything else. patrickstar/core/memtracer/memtracer.py, update_margin_mem.
int optimizer_chunks_on_device(Bytes device, Bytes others_peak, Bytes parameter_chunks, std::int64_t chunk_elements);

}  // namespace foreshard
