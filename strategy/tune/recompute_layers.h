// `--recompute auto`: full recomputation of as few layers of each stage as memory allows. Internal to strategy/.
#pragma once

#include "strategy/program/lowering.h"

namespace foreshard {

// For each rank the least number n with which its program fits when the first n layers of each of its stages are recomputed. Ranks do
// not share memory, so each is searched by itself, by building its program. Where recomputing all layers is not enough, the answer is
// all layers, and does_not_fit reports later what is missing. `lowering` has no roles yet and recomputation Full with layers -1;
// `by_order`: of RoleTrial.
Recompute fewest_redone_layers(const Lowering& lowering, bool by_order);

}  // namespace foreshard
