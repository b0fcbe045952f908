// simulate: plays a Plan on a Cluster with SimGrid as the clock. It obeys the plan and knows nothing of strategies.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "core/cluster.h"
#include "core/plan.h"
#include "core/result.h"

namespace foreshard {

struct Straggler {  // compute of one rank is slower by a factor
  RankId rank = {};
  double slowdown = 1.0;
};

struct SimulateOptions {
  Granularity granularity = Granularity::Layer;
  Folding folding = Folding::Full;
  bool memory_events = false;                          // keep the events of the memory timeline, not only its peaks
  std::vector<Straggler> stragglers = {};              // split their class
  const std::atomic<bool>* cancel = nullptr;           // set: the run ends early with Error "cancelled"
  std::function<void(double fraction)> progress = {};  // of the actions of all classes
};

// Throws Error when plan and cluster do not belong together (unknown device kind, more ranks than devices, broken
// numbers); a plan that check_plan accepts always comes to an end.
Result simulate(const Plan& plan, const Cluster& cluster, const SimulateOptions& options = {});
Result simulate(Plan&& plan, const Cluster& cluster, const SimulateOptions& options = {});  // the Result takes the plan

}  // namespace foreshard
