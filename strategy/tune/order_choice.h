// `--schedule best`: the order of work on each pipeline rank. Internal to strategy/.
#pragma once

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"

namespace foreshard {

// The fastest order for a resolved strategy in which nothing else is open. It compares the plans that fit of
//   - the order that search_schedule (strategy/schedule) finds, returned as Schedule::Listed. Its stage times come from a trial plan. The
//     micro-batches that a rank may keep in flight, at most 2 pp, come from building that rank's program;
//   - the built-in schedules with one stage per rank and a flush, such as 1F1B and zero bubble. So none of these is faster than the result.
// 1F1B when none fits.
PipelineChoice best_order(const Model& model, const Cluster& cluster, const Strategy& strategy, const LowerOptions& options);

}  // namespace foreshard
