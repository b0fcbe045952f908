// Searches stages with degrees of their own: judges (times) proposals, then improves the best of them by small steps (walks: local
// searches). Shared by `partition`, which judges with the simulator, and `search`, which judges with refine.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/strategy/strategy.h"

namespace foreshard {

// Seconds of one iteration of each strategy; empty where it cannot run.
using JudgeStrategies = std::function<std::vector<std::optional<double>>(const std::vector<Strategy>&)>;

struct HybridSearch {
  int devices = 1;       // ranks that all stages together may use
  int walks = 1;         // number of walks of small steps; they begin at the best proposals
  int steps = 40;        // strategies that each walk may judge, counting those that can run
  double cells = 1e300;  // most stages * micro-batches, summed over all judged strategies: the cost of judging
  int at_once = 1;       // strategies per call of the judge in a walk
};

struct HybridFound {
  Strategy strategy = {};  // a proposal, with the stages that were found
  double seconds = 0;
  int judged = 0;  // strategies that were judged and can run
};

// The fastest of the proposals and of what the walks find. Every proposal has Strategy::stages. The walks begin at proposals that differ
// in the number of stages or the micro-batch. Empty: no proposal can run.
std::optional<HybridFound> improve_stages(const std::vector<Strategy>& proposals, const HybridSearch& how,
                                          const JudgeStrategies& judge);

// The stages of a strategy without virtual stages, written as Strategy::stages; `layers`: of the model.
std::vector<StageDegrees> stages_of(const Strategy& strategy, int layers);

}  // namespace foreshard
