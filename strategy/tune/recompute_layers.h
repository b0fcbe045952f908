// `--recompute auto`: on each stage the fewest layers redone whole that make room. Internal to strategy/.
#pragma once

#include "strategy/program/lowering.h"

namespace foreshard {

// Recomputation of the first layers of the stages of each rank, the same number in every one of them: the least that fits.
// Ranks do not share memory, so each is searched alone, by building its program. Where all of a stage is not enough it stays all
// (does_not_fit tells what is missing). `lowering` has no roles yet, and Full with layers -1.
Recompute fewest_redone_layers(const Lowering& lowering);

}  // namespace foreshard
