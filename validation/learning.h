// How much measured runs help to predict other runs of the same machine. Compares errors, regret and intervals of three
// predictions of each row: with nothing learned, learned from runs of other sweeps, and learned from runs of other models.
#pragma once

#include <string>
#include <vector>

#include "validation/validation.h"

namespace foreshard {

struct LearnedPrediction {
  double predicted = 0, low = 0, high = 0;  // low, high: 90 % interval; 0 when nothing was learned
  bool learned = false;
};
// A row that measures a whole iteration, with its three predictions.
struct LearningRow {
  ValidatedRow plain = {};           // nothing learned
  LearnedPrediction sweep_out = {};  // learned from runs of other sweeps
  LearnedPrediction model_out = {};  // learned from runs of models with another number of layers or hidden size
};

struct LearningScore {
  int learned = 0;              // rows for which there were runs to learn from; the others keep their plain prediction
  double median = 0, mean = 0;  // of |error|, all rows
  double regret = 0;            // mean over sweeps, as Validation::regret
  double coverage90 = 0;        // share of the learned rows inside their interval
  double width = 0;             // median of ln(high / low) over the intervals of the learned rows
  bool operator==(const LearningScore&) const = default;
};
struct LearningCell {
  std::string source = {};  // empty: all
  int rows = 0, sweeps = 0;
  LearningScore plain = {}, sweep_out = {}, model_out = {};
};

// One cell per source, then one of all rows when there are several sources.
std::vector<LearningCell> learning_cells(const std::vector<LearningRow>& rows);

std::string learning_text(const std::vector<LearningCell>& cells);
std::string learning_markdown(const std::vector<LearningCell>& cells);
std::string learning_json(const std::vector<LearningCell>& cells);  // an array

}  // namespace foreshard
