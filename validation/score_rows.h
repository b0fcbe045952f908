// Turns predicted rows into scores: which rows are scored, which are skipped and why, and how much runs help to predict each other.
#pragma once

#include <cstddef>
#include <vector>

#include "validation/learned_runs.h"
#include "validation/learning.h"
#include "validation/prediction_interval.h"
#include "validation/validation.h"

namespace foreshard {

struct ScoredRows {
  Validation validation = {};
  std::vector<std::size_t> asked = {};  // [scored row]: its index in the vector of Asked
};

// `published`: the errors of published runs. A row's shipped interval comes from those of other sources than its own.
ScoredRows score_rows(const std::vector<Asked>& asked, const Comparisons& published);

// Predicts each scored row of a whole iteration of a dense model with costs learned from runs of other sweeps, and of other models.
std::vector<LearningCell> learning_of(Predictor& predictor, const std::vector<Asked>& asked, const ScoredRows& scored);

}  // namespace foreshard
