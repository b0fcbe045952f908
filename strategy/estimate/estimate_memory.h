// Bytes that a point of the space takes on its ranks, in closed form.
#pragma once

#include "strategy/estimate/estimate_model.h"

namespace foreshard {

// Bytes of one rank: what does not depend on the micro-batches in flight, scratch apart, and how many of these there are, in
// chunks.
struct RankBytes {
  double fixed = 0, flight = 0;
};
RankBytes rank_memory(const ScreenedModel& model, const Point& point, const ShapeCosts& shape, double microbatches, int kind,
                       double rank, double layers);
// Of chunks in flight on one rank, of which only one can be of a stage at an end.
double activations_of(const ShapeCosts& shape, int kind, double layers, double flight, bool chunks);
// Of the largest rank, framework included.
double memory_of(const ScreenedModel& model, const Point& point, const ShapeCosts& shape, const GridCosts& grid);

}  // namespace foreshard
