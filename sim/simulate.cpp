#include "sim/simulate.h"

#include <memory>
#include <utility>

#include "core/base/error.h"
#include "sim/own_process.h"
#include "sim/simgrid_clock.h"

namespace foreshard {
namespace {

using sim::OwnProcess;
using sim::SharedArray;
using sim::SimGridClock;

// The flows are found and folded here; the clock runs in a process of its own, which writes what it played where this one reads it.
Result played(const Plan& plan, const Cluster& cluster, const SimulateOptions& options, const Meanwhile& meanwhile) {
  const OwnProcess::Progress* progress = nullptr;
  SimulateOptions there = options;
  if (options.progress) there.progress = [&](double fraction) { (*progress)(fraction); };
  auto replay = std::make_unique<const Replay>(plan, cluster, there);
  const SharedArray<Span> spans(replay->spans());
  const SharedArray<PlayedLink> links(replay->links());
  const SharedArray<Played> shared(1);
  Played& played = shared.items().front();
  played = {.spans = spans.items(), .links = links.items()};
  OwnProcess process([&](const OwnProcess::Progress& to_parent) {
    progress = &to_parent;
    replay->play(*new SimGridClock, played);  // the process ends here: nobody waits until SimGrid has tidied up
  });
  Unplayed unplayed = replay->unplayed();
  replay.reset();  // of this process: takes a while, and the clock is still running
  if (meanwhile) meanwhile(plan);
  process.wait(options.cancel, options.progress);
  return add_played(std::move(unplayed), options, played);
}

}  // namespace

void expect_simgrid(const std::string&, const std::string&) {}

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
