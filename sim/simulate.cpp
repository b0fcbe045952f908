#include "sim/simulate.h"

#include <utility>

#include "sim/simgrid_clock.h"

namespace foreshard {

static Result played(const Plan& plan, const Cluster& cluster, const SimulateOptions& options) {
  sim::SimGridClock clock;
  return replay(plan, cluster, clock, options);
}

Result simulate(Plan&& plan, const Cluster& cluster, const SimulateOptions& options) {
  Result result = played(plan, cluster, options);
  result.plan = std::move(plan);
  return result;
}

Result simulate(const Plan& plan, const Cluster& cluster, const SimulateOptions& options) {
  Result result = played(plan, cluster, options);
  result.plan = plan;
  return result;
}

}  // namespace foreshard
