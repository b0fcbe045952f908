// How much measured runs help to predict others of the same machine: errors, regret and intervals of predictions with nothing
// learned, and with what was learned from the runs that share neither sweep nor model with the row.
#pragma once

#include <string>
#include <vector>

#include "validation/validation.h"

namespace foreshard {

struct LearnedPrediction {
  double predicted = 0, low = 0, high = 0;  // 90 % interval; none when nothing was learned
  bool learned = false;
};
// A row of a whole iteration: as it is predicted with nothing learned, ...
struct LearningRow {
  ValidatedRow plain = {};
  LearnedPrediction sweep_out = {};  // ... by the runs of other sweeps, and
  LearnedPrediction model_out = {};  // by those of models with another number of layers or hidden size
};

struct LearningScore {
  int learned = 0;              // rows with anything to learn from; the others keep their prediction
  double median = 0, mean = 0;  // of |error|, all rows
  double regret = 0;            // mean over sweeps, as Validation::regret
  double coverage90 = 0;        // of the learned rows
  double width = 0;             // median, of their intervals, ln(high / low)
  bool operator==(const LearningScore&) const = default;
};
struct LearningCell {
  std::string source = {};  // empty: all
  int rows = 0, sweeps = 0;
  LearningScore plain = {}, sweep_out = {}, model_out = {};
};

// By source, then all together.
std::vector<LearningCell> learning_cells(const std::vector<LearningRow>& rows);

std::string learning_text(const std::vector<LearningCell>& cells);
std::string learning_markdown(const std::vector<LearningCell>& cells);
std::string learning_json(const std::vector<LearningCell>& cells);  // an array

}  // namespace foreshard
