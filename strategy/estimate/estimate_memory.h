// Device memory of the ranks of a point of the space, in closed form.
#pragma once

#include "strategy/estimate/estimate_model.h"

namespace foreshard {

// Of one pipeline rank: `fixed`, the bytes that do not depend on the micro-batches in flight, without scratch; `flight`, the most
// micro-batches in flight (with virtual stages: chunks times micro-batches).
struct RankBytes {
  double fixed = 0, flight = 0;
};
// `kind`: stage_kind of the rank; `layers`: of each of its stages.
RankBytes rank_memory(const ScreenedModel& model, const Point& point, const ShapeCosts& shape, double microbatches, int kind,
                      double rank, double layers);
// Bytes of activations with `flight` micro-batches (or chunks times micro-batches) in flight. With virtual stages (`chunks`) only one of
// these is of a stage of `kind`; the others are of stages between the ends.
double activations_of(const ShapeCosts& shape, int kind, double layers, double flight, bool chunks);
// Bytes of the largest rank: model states, activations, scratch and framework memory.
double memory_of(const ScreenedModel& model, const Point& point, const ShapeCosts& shape, const GridCosts& grid);

}  // namespace foreshard
