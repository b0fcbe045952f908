// Twin: a measured result that is matched to the prediction of the same plan. Spans of equal rank, action and stream are the same work;
// so each action of the prediction has a measured time and a signed error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gui/document/document.h"

namespace foreshard {

struct ErrorCell {                            // of one action on the compute stream
  Nanoseconds begin = {}, end = {};           // in the prediction
  Nanoseconds predicted = {}, measured = {};  // busy time
  std::int32_t action = 0;
  double error() const;  // (measured - predicted) / predicted; 0 when nothing was predicted
  bool operator==(const ErrorCell&) const = default;
};

struct Twin {
  std::shared_ptr<const Document> measured = {};   // shared with the views that draw it
  std::vector<ClassId> of_class = {};              // [class of the prediction]: its class in `measured`; invalid: none
  std::vector<std::vector<ErrorCell>> cells = {};  // [class of the prediction], ordered by begin
  double bias = 0;                                 // sum of measured times over sum of predicted ones, less 1
  double p95 = 0;                                  // 95th percentile of |error| over all cells
};

// Matches the two and computes the errors. If their devices differ it computes none, as lay_beside. Throws Error if the two are not runs
// of the same program.
std::shared_ptr<const Twin> match_twin(const Document& predicted, std::shared_ptr<const Document> measured);

// For results of different programs or devices: matches classes of the same role and computes no errors.
std::shared_ptr<const Twin> lay_beside(const Document& document, std::shared_ptr<const Document> other);

}  // namespace foreshard
