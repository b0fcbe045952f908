// Local search over the layers and degrees of pipeline stages. A callback, the judge, gives the time of an iteration with each proposal.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/strategy/strategy.h"

namespace foreshard {

// All results of one step: a layer moves to the next or previous stage; a stage doubles or halves its replicas or its tensor ranks, or
// doubles one and halves the other; two neighbouring stages become one; a stage is cut into halves. Results use at most `devices` ranks
// and have at least one layer in every stage. Whether they can run is left to the judge.
std::vector<std::vector<StageDegrees>> one_step(const std::vector<StageDegrees>& stages, int devices);

struct Stepped {
  std::vector<StageDegrees> stages = {};
  double seconds = 0;  // of one iteration
  int judged = 0;      // stages that were judged and can run
};
// Seconds of one iteration with each of these stages; empty where they cannot run.
using JudgeStages = std::function<std::vector<std::optional<double>>(const std::vector<std::vector<StageDegrees>>&)>;

// `devices`: ranks that all stages together may use. `most`: the judge is not called again once this many of the judged stages can run.
// `at_once`: stages per call of the judge.
struct StepLimits {
  int devices = 1, most = 40, at_once = 1;
};
// Walks from `start`, which takes `seconds`. Judges the results of one step in batches of `at_once`, moves to the best result of the first
// batch that has one faster by more than a thousandth, and goes on from there. Ends when no step is faster, or at limits.most. Never worse
// than the start.
Stepped step_by_step(const std::vector<StageDegrees>& start, double seconds, const StepLimits& limits,
                     const JudgeStages& judge);

}  // namespace foreshard
