// Learning from measured runs (docs/learning.md): turns rows of a table into runs of a machine, learns costs from them, and
// predicts each row with costs that were learned from unrelated rows only (cross-validation).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strategy/learning/learn_costs.h"
#include "validation/learning.h"
#include "validation/measured.h"
#include "validation/measured_case.h"
#include "validation/measured_prediction.h"

namespace foreshard {

// The key of the row's sweep: rows that differ in their strategy only have the same key.
std::string sweep_of(const MeasuredRow& row);

// A row, the case that is predicted for it (or why there is none), and its prediction.
struct Asked {
  const MeasuredRow* row = nullptr;
  std::variant<MeasuredCase, SkipReason> question = SkipReason::Quantity;
  Prediction prediction = {};
  // Where the row does not state the network's rate: predicted with half and with twice the assumed one. 0: the row states it, or does not
  // depend on it.
  double half_network = 0, twice_network = 0;
  std::string problem = {};  // SkipReason::BadCell, Bug: the message
};
// [row]. Predicts the rows in parallel; equal configurations are evaluated once. A row with wrong input or a bug of ours is one that is not
// predicted, with its reason.
using ReadCase = std::function<std::variant<MeasuredCase, SkipReason>(const MeasuredRow&)>;
std::vector<Asked> predict_all(Predictor& predictor, const std::vector<MeasuredRow>& rows,
                               const ReadCase& read = measured_case);
// Converts a prediction to the unit of the row: some tables state MFU as a share, where predictions are per cent.
double in_unit_of(const Asked& asked, double value);

// A row that measures a whole iteration and was predicted.
struct RunRow {
  std::size_t asked = 0;               // index in the vector of Asked
  std::string machine = {};            // source, GPU, with or without experts: costs are learned from runs of the same machine
  std::string device = {};             // the GPU's name in cluster files
  std::string run = {};                // key of the run; one run may have several rows, each of another quantity
  std::string sweep = {};              // key of the run's sweep, the same for all quantities
  std::string model = {};              // layers and hidden size
  double predicted = 0, measured = 0;  // in the row's unit
  bool rate = false;                   // larger is better
  std::vector<PartShare> shares = {};  // of the predicted iteration; empty: nothing is learned from it
  std::string problem = {};            // the bug of ours that kept its shares from being found
  double ratio() const { return rate ? predicted / measured : measured / predicted; }  // measured time / predicted time
};
std::vector<RunRow> runs_of(const std::vector<Asked>& asked);

// The costs learned from the rows with indices `which`; of several rows of one run only the first is used.
LearnedCosts learn_from(const std::vector<RunRow>& rows, const std::vector<std::size_t>& which);

// [row]. Predicts each row with costs learned from those rows of its machine that have another `key` (RunRow::sweep or
// RunRow::model): leave-one-group-out cross-validation.
std::vector<LearnedPrediction> predict_left_out(Predictor& predictor, const std::vector<Asked>& asked,
                                                const std::vector<RunRow>& rows, std::string RunRow::*key);

}  // namespace foreshard
