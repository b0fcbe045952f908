#include "sim/simulate.h"

#include <memory>
#include <utility>

#include "core/base/error.h"
#include "sim/forked_process.h"
#include "sim/simgrid_module.h"

namespace foreshard {
namespace {

using sim::ForkedProcess;
using sim::SharedArray;

// This process expands the plan into flows and folds them; the clock runs in a child process, which writes spans and link use into shared
// memory.
Result played(const Plan& plan, const Cluster& cluster, const SimulateOptions& options, const Meanwhile& meanwhile) {
  sim::open_simgrid("simulate");  // before the fork: the next simulation finds it open
  const ForkedProcess::Progress* progress = nullptr;
  SimulateOptions there = options;
  if (options.progress) there.progress = [&](double fraction) { (*progress)(fraction); };
  auto replay = std::make_unique<const Replay>(plan, cluster, there);
  const SharedArray<Span> spans(replay->spans());
  const SharedArray<PlayedLink> links(replay->links());
  const SharedArray<Played> shared(1);
  Played& played = shared.items().front();
  played = {.spans = spans.items(), .links = links.items()};
  ForkedProcess process([&](const ForkedProcess::Progress& to_parent) {
    progress = &to_parent;
    replay->play(*sim::new_simgrid_clock().release(),
                 played);  // never deleted: the process ends next, and SimGrid's clean-up would take time
  });
  ResultFrame unplayed = replay->unplayed();
  replay.reset();  // frees this process's copy now, which takes a while, as the clock is still running in the child
  if (meanwhile) meanwhile(plan);
  unplayed.result.period_s = options.runs == 1 && has_steady_period(plan) ? steady_period(plan, cluster, options) : 0;
  process.wait(options.cancel, options.progress);
  return add_played(std::move(unplayed), options, played);
}

}  // namespace

void expect_simgrid(const std::string& operation, const std::string& instead) {
  sim::open_simgrid(operation, "; cmake -DFORESHARD_SIMGRID=ON builds it; " + instead);
}

Result simulate(Plan&& plan, const Cluster& cluster, const SimulateOptions& options, const Meanwhile& meanwhile) {
  Result result = played(plan, cluster, options, meanwhile);
  result.plan = std::move(plan);
  return result;
}

Result simulate(const Plan& plan, const Cluster& cluster, const SimulateOptions& options, const Meanwhile& meanwhile) {
  Result result = played(plan, cluster, options, meanwhile);
  result.plan = plan;
  return result;
}

}  // namespace foreshard
