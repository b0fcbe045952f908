// Twin: a measured result laid beside the prediction of the same plan. Spans of one rank, action and stream are the same work, so
// each cell of the prediction has a measured time and a signed error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gui/document/document.h"

namespace foreshard {

struct ErrorCell {                            // of one action on the compute stream
  Nanoseconds begin = {}, end = {};           // where the prediction has it
  Nanoseconds predicted = {}, measured = {};  // busy time
  std::int32_t action = 0;
  double error() const;  // (measured - predicted) / predicted; 0 when nothing was predicted
  bool operator==(const ErrorCell&) const = default;
};

struct Twin {
  std::shared_ptr<const Document> measured = {};   // shared with the views that draw it
  std::vector<ClassId> of_class = {};              // [class of the prediction]: of the measurement; invalid: not measured
  std::vector<std::vector<ErrorCell>> cells = {};  // [class of the prediction], ordered by begin
  double bias = 0;                                 // sum of measured over sum of predicted, less 1
  double p95 = 0;                                  // of |error| over all cells
};

// Without errors where they would be of two kinds of devices. Throws Error when the two are not runs of the same program.
std::shared_ptr<const Twin> match_twin(const Document& predicted, std::shared_ptr<const Document> measured);

// For two programs, or two kinds of devices: classes of the same place among the stages beside each other, without errors.
std::shared_ptr<const Twin> lay_beside(const Document& document, std::shared_ptr<const Document> other);

}  // namespace foreshard
