// `--recompute best`: chooses for every layer of a pipeline rank one of several forms of recomputation, so that the rank fits its memory
// and recomputes for the least time (strategy/recompute/layer_choice.h). Internal to strategy/.
#pragma once

#include "strategy/program/lowering.h"
#include "strategy/tune/tune.h"

namespace foreshard {

struct BestLayers {
  Recompute recompute = {};             // of every layer of the model; None or Full where all are alike
  std::vector<RankTrades> trades = {};  // [pipeline rank]
};

// Ranks do not share memory, so each is chosen for by itself. A form costs the isolated times of the operators that it runs again, and
// the bytes of the values that it keeps. Memory beyond these (scratch, fragmentation of the arena) is measured: the rank's program is
// built with the choice, and the choice is made again with that much more or less memory until it just fits. Then single layers change
// to faster forms where that fits. The choice is also compared with full recomputation of the fewest first layers, so it is never
// slower than that. All chunks of a rank use the same form at the same position. Where nothing fits, every layer takes the form that
// keeps least. `lowering` has no roles yet; `by_order`: of RoleTrial.
BestLayers best_layers(const Lowering& lowering, bool by_order);

}  // namespace foreshard
