// replay: plays a Plan on a Cluster over a Clock. It obeys the plan and knows nothing of strategies. `simulate` is replay on
// SimGrid; on the light clock (replay/light_clock.h) the same player gives the same Result sooner.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "core/cluster.h"
#include "core/plan.h"
#include "core/result.h"
#include "replay/clock.h"

namespace foreshard {

struct Straggler {  // compute of one rank is slower by a factor
  RankId rank = {};
  double slowdown = 1.0;
};

struct ReplayOptions {
  Granularity granularity = Granularity::Layer;
  Folding folding = Folding::Full;
  bool memory_events = false;                          // keep the events of the memory timeline, not only its peaks
  std::vector<Straggler> stragglers = {};              // split their class
  const std::atomic<bool>* cancel = nullptr;           // set: the run ends early with Error "cancelled"
  std::function<void(double fraction)> progress = {};  // of the actions of all classes
};

// `clock` is new: nothing was added to it before. Result::plan stays empty; the caller owns the plan. Throws Error when plan and
// cluster do not belong together (unknown device kind, more ranks than devices, broken numbers); a plan that check_plan accepts
// always comes to an end.
Result replay(const Plan& plan, const Cluster& cluster, player::Clock& clock, const ReplayOptions& options = {});

}  // namespace foreshard
