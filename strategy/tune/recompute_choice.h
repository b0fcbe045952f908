// `--recompute best`: one of several ways to keep values for every layer of a pipeline rank, so that its memory is filled and the
// least is computed again (layer_choice.h). Internal to strategy/.
#pragma once

#include "strategy/program/lowering.h"
#include "strategy/tune/tune.h"

namespace foreshard {

struct BestLayers {
  Recompute recompute = {};             // of every layer of the model; None or Full where all are alike
  std::vector<RankTrades> trades = {};  // [pipeline rank]
};

// Ranks do not share memory, so each is filled alone. Seconds are those of the operators that run again, each alone, bytes those of the
// values that are kept. What they leave out (scratch, the order in the arena) is measured: the rank's program is built with what was
// chosen, and the choice made again with as much memory more or less, until it fits and no more would; then, layer by layer, a faster
// way where it fits. So it is never slower than the fewest first layers redone whole. The chunks of a rank do alike at equal positions.
// Where nothing fits, every layer keeps as little as it can. `lowering` has no roles yet.
BestLayers best_layers(const Lowering& lowering);

}  // namespace foreshard
