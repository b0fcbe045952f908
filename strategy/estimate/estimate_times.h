// The time of one iteration of a point of the space where GPUs are equal: what stages take, the pipeline, what ZeRO and gradients send, the ends of
// an iteration (docs/search-estimates.md, "Screen"). Arithmetic only.
#pragma once

#include "strategy/estimate/estimate_model.h"
#include "strategy/estimate/estimate_pipeline.h"

namespace foreshard {

struct TimedPoint {
  double time = 0, bound = 0;  // seconds; no schedule is faster than `bound`
};

class PointTimes {
 public:
  // All must outlive it.
  PointTimes(const ScreenedModel& model, const Point& point, const ShapeCosts& shape, const GridCosts& grid)
      : model_(model), point_(point), shape_(shape), grid_(grid), layers_(model.layers_of(point)) {}

  TimedPoint timed() const;

  // The parts of it, of which ranks on different GPUs take each its own.
  PipelineTimes moving() const;  // of each kind of stage, without what ZeRO 2 and 3 send
  double link_time() const;      // no iteration is shorter than its fullest link is busy
  // Adds what ZeRO 2 and 3 send. `ahead`: the number of layers that are gathered already when an action begins.
  void shard(PipelineTimes& times, double ahead = 0) const;
  double late_start(const PipelineTimes& times) const;  // of parameters gathered beside the first forwards
  // Seconds on one rank, from the end of its last backward.
  struct Tail {
    double slowed = 0;  // seconds that communication added to its last backwards
    double all = 0;     // until all is done, when no embedding is tied
    double tied = 0;    // until the sum of the tied embedding could begin
    double after = 0;   // from the end of that sum until all is done
    // Sums and gathers of the end of the run, and what is left of the former after the last backward.
    double sums = 0, over_groups = 0, gathers = 0, behind = 0;
  };
  Tail tail(const PipelineTimes& times, int kind) const;
  // `first`, with how much later it is done because sums and gathers of all stages are on its links.
  Tail among_others(const PipelineTimes& times, const Tail& middle, const Tail& last, Tail first) const;
  double tied_sum() const;  // of the two copies of a tied embedding

 private:
  struct ChunkTail;
  double gathered_ahead(const PipelineTimes& plain, const PipelineTimes& times) const;
  ChunkTail chunk_tail(int kind, double layers, double backward) const;
  double finished(const PipelineTimes& times) const;

  const ScreenedModel& model_;
  const Point& point_;
  const ShapeCosts& shape_;
  const GridCosts& grid_;
  ScreenedModel::Layers layers_;
};

}  // namespace foreshard
