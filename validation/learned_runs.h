// Learning from measured runs (docs/learning.md): rows of a table as runs of a machine, what they teach together, and what is
// predicted for each of them by those that have nothing to do with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategy/learning/learn_costs.h"
#include "validation/learning.h"
#include "validation/measured.h"
#include "validation/measured_case.h"
#include "validation/measured_prediction.h"

namespace foreshard {

// Rows that differ in their strategy only: what somebody looking for a strategy would have to put in order.
std::string sweep_of(const MeasuredRow& row);

// A row with what is asked of it and what the engine answers.
struct Asked {
  const MeasuredRow* row = nullptr;
  std::variant<MeasuredCase, SkipReason> question = SkipReason::Quantity;
  Prediction prediction = {};
};
// Rows are independent; what they share, the predictor keeps. An exception of any row is thrown here.
std::vector<Asked> predict_all(Predictor& predictor, const std::vector<MeasuredRow>& rows);
// A prediction in the unit of the row: some tables have shares where others have per cent.
double in_unit_of(const Asked& asked, double value);

// A row of a whole iteration, whose model could be asked and did answer.
struct RunRow {
  std::size_t asked = 0;               // which row
  std::string machine = {};            // source, GPU, dense or not: whose runs teach about each other
  std::string device = {};             // the GPU's name in cluster files
  std::string run = {};                // rows of one run: different quantities
  std::string sweep = {};              // of its run, whatever was measured
  std::string model = {};              // layers and hidden size
  double predicted = 0, measured = 0;  // in the row's unit
  bool rate = false;
  std::vector<PartShare> shares = {};
  double ratio() const { return rate ? predicted / measured : measured / predicted; }  // of times
};
std::vector<RunRow> runs_of(const std::vector<Asked>& asked);

// What these rows teach; of rows of one run the first counts.
LearnedCosts learn_from(const std::vector<RunRow>& rows, const std::vector<std::size_t>& which);

// Each row by the rows of its machine that `key` tells from it; the fit never sees the rows that are left out with it.
std::vector<LearnedPrediction> predict_left_out(Predictor& predictor, const std::vector<Asked>& asked,
                                                const std::vector<RunRow>& rows, std::string RunRow::*key);

}  // namespace foreshard
