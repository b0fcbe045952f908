// Full recomputation layer by layer: which layers it takes in, and on each stage the fewest that make room. Internal to strategy/.
#pragma once

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "strategy/lower/lowering.h"

namespace foreshard {

// [op graph layer]: its number in keep_forms(recompute). Other than 0 are only layers that count: under RecomputeKind::Full those
// whose backward runs their whole forward again, under Each those that do not keep all. `recompute.layers` is at least 0. Ranks of stages are those of `schedule` on `pp` ranks.
std::vector<char> layers_redone(const Recompute& recompute, const OpGraph& graph, const StageLayout& layout, Schedule schedule,
                                int pp);
// Why `recompute` does not go with these stages: another number of them, more layers than a stage or the model has.
std::optional<Infeasible> refuse_layers(const Recompute& recompute, const OpGraph& graph, const StageLayout& layout, int pp);

// Recomputation of the first layers of the stages of each rank, the same number in every one of them: the least that fits.
// Ranks do not share memory, so each is searched alone, by building its program. Where all of a stage is not enough it stays all
// (does_not_fit tells what is missing). `lowering` has no roles yet, and Full with layers -1.
Recompute fewest_redone_layers(const Lowering& lowering);

}  // namespace foreshard
