// Stages with degrees of their own, from proposals to what small steps make of them: the one way of `partition`, which judges by the
// simulator, and `search`, which judges by refine.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/strategy/strategy.h"

namespace foreshard {

// Seconds of a step of training, of each; empty: it cannot be.
using JudgeStrategies = std::function<std::vector<std::optional<double>>(const std::vector<Strategy>&)>;

struct HybridSearch {
  int devices = 1;
  int walks = 1;         // that begin at the best of the proposals
  int steps = 40;        // judged on each
  double cells = 1e300;  // stages times micro-batches that all walks together may judge, which is what judging costs
  int at_once = 1;       // judged together
};

struct HybridFound {
  Strategy strategy = {};  // as proposed, with other stages
  double seconds = 0;
  int judged = 0;  // all that could be
};

// The fastest of the proposals, all with stages, and of what steps lead to from the best of them. Empty: none can be.
std::optional<HybridFound> improve_stages(const std::vector<Strategy>& proposals, const HybridSearch& how,
                                          const JudgeStrategies& judge);

// The stages of any pipeline without virtual stages; `layers`: of the model.
std::vector<StageDegrees> stages_of(const Strategy& strategy, int layers);

}  // namespace foreshard
