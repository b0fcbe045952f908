// From predicted rows to scores: which rows count, which are skipped and why, and how much runs help to predict each other.
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
  std::vector<std::size_t> asked = {};  // [i] of the scored row i: its index in the rows that were asked
};

// `published`: residuals of published runs. They give the interval of a row whose cell has too few rows of its own.
ScoredRows score_rows(const std::vector<Asked>& asked, const std::vector<Spread>& published);

// The scored rows that are whole iterations, each predicted by what the runs of other sweeps and of other models taught.
std::vector<LearningCell> learning_of(Predictor& predictor, const std::vector<Asked>& asked, const ScoredRows& scored);

}  // namespace foreshard
