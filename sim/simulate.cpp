#include "sim/simulate.h"

#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "sim/own_process.h"
#include "sim/simgrid_clock.h"

namespace foreshard {
namespace {

// Calls with each list of what was played, in the order in which they cross to this process.
template <class SomePlayed, class Visit>
void each_list(SomePlayed& played, const Visit& visit) {
  visit(played.spans);
  visit(played.link_bytes);
  visit(played.link_busy);
}

// The flows are found and folded here; the clock runs in a process of its own.
Result played(const Plan& plan, const Cluster& cluster, const SimulateOptions& options) {
  const sim::Reply* reply = nullptr;
  SimulateOptions there = options;
  if (options.progress) there.progress = [&](double fraction) { reply->progress(fraction); };
  const Replay replay(plan, cluster, there);
  const auto play = [&](const sim::Reply& r) {
    reply = &r;
    sim::SimGridClock clock;
    const Played played = replay.play(clock);
    r.write(&played.makespan, sizeof played.makespan);
    r.write(&played.events, sizeof played.events);
    each_list(played, [&](const auto& list) { r.write(list.data(), list.size() * sizeof list[0]); });
  };
  Played played;
  int block = 0;
  const auto place = [&](std::size_t bytes) -> void* {
    const int number = block++;
    if (number == 0) return &played.makespan;
    if (number == 1) return &played.events;
    int of = 2;
    void* room = nullptr;
    each_list(played, [&](auto& list) {
      using Element = typename std::decay_t<decltype(list)>::value_type;
      static_assert(std::is_trivially_copyable_v<Element>);
      if (of++ != number) return;
      list.resize(bytes / sizeof(Element));
      room = list.data();
    });
    FS_ASSERT(room != nullptr || bytes == 0);
    return room;
  };
  sim::in_own_process(play, place, options.cancel, options.progress);
  return replay.result(std::move(played));
}

}  // namespace

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
