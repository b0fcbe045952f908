// Stages made better by small steps, whoever judges them: docs/search.md, "Data and tensor parallelism per stage".
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/strategy/strategy.h"

namespace foreshard {

// What one step leads to: a layer moved over a border, a stage with twice or half the replicas or tensor ranks or with one doubled and
// the other halved, two neighbours as one, one cut into halves. On at most `devices` ranks, a layer at least in every stage; whether
// such stages can be is left to the judge.
std::vector<std::vector<StageDegrees>> one_step(const std::vector<StageDegrees>& stages, int devices);

struct Stepped {
  std::vector<StageDegrees> stages = {};
  double seconds = 0;
  int judged = 0;
};
// Seconds of a step of training, of each; empty: these stages cannot be.
using JudgeStages = std::function<std::vector<std::optional<double>>(const std::vector<std::vector<StageDegrees>>&)>;

// From `start`, which takes `seconds`, to the best of the first `at_once` steps of which one is better (by a thousandth at least), and on
// from there, until no step is or `most` were judged. Never worse than the start.
struct StepLimits {
  int devices = 1, most = 40, at_once = 1;
};
Stepped step_by_step(const std::vector<StageDegrees>& start, double seconds, const StepLimits& limits,
                     const JudgeStages& judge);

}  // namespace foreshard
