// `--schedule best`: the order of work on each pipeline rank. Internal to strategy/.
#pragma once

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"

namespace foreshard {

// Of a resolved strategy whose order is to be found, and in which nothing else is open. Times of the stages come from a trial plan, the
// micro-batches that each rank may keep in flight from programs of that rank (at most 2 pp); search_schedule (strategy/schedule) looks for an
// order of input and weight gradients that keeps them. The fastest plan that fits holds: of the order found (Schedule::Listed), and of the
// rules with one stage per rank and a flush, 1f1b and zero bubble among them, so none of these is faster. When none fits: 1f1b.
PipelineChoice best_order(const Model& model, const Cluster& cluster, const Strategy& strategy, const LowerOptions& options);

}  // namespace foreshard
