#include "replay/replay.h"

#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/network.h"
#include "core/ranks.h"
#include "replay/cast.h"
#include "replay/flows.h"
#include "replay/patterns.h"
#include "replay/player.h"
#include "replay/quotient.h"
#include "replay/validate.h"
#include "replay/ways.h"

namespace foreshard {
namespace {

// Trace::makespan is in nanoseconds of 64 bits.
constexpr double kLongestRun = 9e9;

std::vector<LinkClass> loads(const Network& network, player::Quotient& quotient, const player::LinkUse& use) {
  std::vector<LinkClass> links = std::move(quotient.links);
  for (std::size_t l = 0; l < links.size(); ++l) {
    links[l].name = network.name(links[l].links.front());
    links[l].bytes = use.bytes(quotient.bundle_of[l]);
    links[l].busy = use.busy(quotient.bundle_of[l]);
  }
  return links;
}

}  // namespace

Result replay(const Plan& plan, const Cluster& cluster, player::Clock& clock, const ReplayOptions& options) {
  player::check_playable(plan);
  const Network network(cluster);
  const Ranks ranks(plan);
  player::check_placed(plan, ranks, network);
  const std::vector<double> slowdown = player::check_stragglers(options, ranks.count());

  const player::Patterns patterns = player::find_patterns(plan);
  const player::Flows flows = player::find_flows(plan, patterns, ranks, network);
  player::Quotient quotient =
      player::fold(plan, ranks, network, patterns, flows, slowdown, options.folding, options.granularity == Granularity::Stage);
  const player::Ways ways = player::find_ways(plan, ranks, patterns, flows, quotient);
  const player::Cast cast = player::make_cast(plan, patterns, flows, quotient, ways, slowdown, options.granularity);
  player::Player player(clock, plan, cast, quotient, ways, options.cancel, options.progress);
  player.play();
  if (!(player.makespan() < kLongestRun))
    throw Error("plan", "costs", "a run of " + std::to_string(player.makespan()) + " s", "less than 285 years");

  Result result;
  result.granularity = options.granularity;
  result.folding = options.folding;
  result.makespan_s = player.makespan();
  result.engine_events = player.events();
  result.trace.plan_hash = program_hash(plan);
  result.trace.makespan = to_nanoseconds({player.makespan()});
  result.trace.spans = player.take_spans();
  result.trace.links = loads(network, quotient, player.link_use());
  result.trace.classes = std::move(quotient.classes);
  result.memory = memory_timeline(plan, result.trace, {options.memory_events});
  return result;
}

}  // namespace foreshard
