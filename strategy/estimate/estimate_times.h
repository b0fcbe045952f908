// The time of one iteration of a point of the space on equal GPUs: times of the stages, the pipeline, communication of ZeRO and gradients,
// begin and end of the iteration (docs/search-estimates.md, "Screen"). Arithmetic only. Times in seconds.
#pragma once

#include "strategy/estimate/estimate_model.h"
#include "strategy/estimate/estimate_pipeline.h"

namespace foreshard {

struct TimedPoint {
  double time = 0, bound = 0;  // of an iteration, and a lower bound on it
  double balanced = 0;         // seconds less with the layers split so that the busiest stage is busy as short as possible
};

class PointTimes {
 public:
  // All arguments must outlive it.
  PointTimes(const ScreenedModel& model, const Point& point, const ShapeCosts& shape, const GridCosts& grid)
      : model_(model), point_(point), shape_(shape), grid_(grid), layers_(model.layers_of(point)) {}

  TimedPoint timed() const;

  // The steps of timed(). They are public for clusters whose GPUs differ, where each kind of GPU has its own.
  PipelineTimes moving() const;         // times of each kind of stage, without the communication of ZeRO 2 and 3
  PipelineTimes communicating() const;  // the part of moving() in collectives between operators
  double link_time() const;             // seconds that the busiest link is busy in an iteration: a lower bound
  // Adds the communication of ZeRO 2 and 3. `ahead`: the number of layers whose parameters are gathered before an action begins.
  void shard(PipelineTimes& times, double ahead = 0) const;
  // Delay of the first forwards by parameter gathers that run at the same time.
  double late_start(const PipelineTimes& times) const;
  // The end of an iteration on one rank, counted from the end of its last backward.
  struct Tail {
    double slowed = 0;  // by which communication makes its last backwards longer
    double all = 0;     // until the rank is done, when no embedding is tied
    double tied = 0;    // until the sum of the tied embedding could begin
    double after = 0;   // from the end of that sum until the rank is done
    // Isolated times at the end of the iteration: gradient sums; the part of them between ZeRO groups; parameter gathers; and the part of
    // the sums that is left after the last backward.
    double sums = 0, over_groups = 0, gathers = 0, behind = 0;
  };
  Tail tail(const PipelineTimes& times, int kind) const;  // `kind`: stage_kind
  // `first` (the tail of the first rank), lengthened by the sums and gathers of other stages that share its links.
  Tail among_others(const PipelineTimes& times, const Tail& middle, const Tail& last, Tail first) const;
  double balancing() const;  // TimedPoint::balanced
  double tied_sum() const;   // duration of the all-reduce between the two copies of a tied embedding

 private:
  struct ChunkTail;
  double gathered_ahead(const PipelineTimes& plain, const PipelineTimes& times) const;  // seconds saved by gathering while idle
  ChunkTail chunk_tail(int kind, double layers, double backward) const;
  double steady(const PipelineTimes& times) const;
  double finished(const PipelineTimes& times) const;

  const ScreenedModel& model_;
  const Point& point_;
  const ShapeCosts& shape_;
  const GridCosts& grid_;
  ScreenedModel::Layers layers_;
};

}  // namespace foreshard
