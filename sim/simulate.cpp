#include "sim/simulate.h"

#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/network.h"
#include "core/ranks.h"
#include "sim/cast.h"
#include "sim/flows.h"
#include "sim/patterns.h"
#include "sim/player.h"
#include "sim/quotient.h"
#include "sim/validate.h"
#include "sim/ways.h"

namespace foreshard {
namespace {

// Trace::makespan is in nanoseconds of 64 bits.
constexpr double kLongestRun = 9e9;

std::vector<LinkClass> loads(const Network& network, sim::Quotient& quotient, const sim::LinkUse& use) {
  std::vector<LinkClass> links = std::move(quotient.links);
  for (std::size_t l = 0; l < links.size(); ++l) {
    links[l].name = network.name(links[l].links.front());
    links[l].bytes = use.bytes(quotient.bundle_of[l]);
    links[l].busy = use.busy(quotient.bundle_of[l]);
  }
  return links;
}

Result play(const Plan& plan, const Cluster& cluster, const SimulateOptions& options) {
  sim::check_playable(plan);
  const Network network(cluster);
  const Ranks ranks(plan);
  sim::check_placed(plan, ranks, network);
  const std::vector<double> slowdown = sim::check_stragglers(options, ranks.count());

  const sim::Patterns patterns = sim::find_patterns(plan);
  const sim::Flows flows = sim::find_flows(plan, patterns, ranks, network);
  sim::Quotient quotient =
      sim::fold(plan, ranks, network, patterns, flows, slowdown, options.folding, options.granularity == Granularity::Stage);
  const sim::Ways ways = sim::find_ways(plan, ranks, patterns, flows, quotient);
  const sim::Cast cast = sim::make_cast(plan, patterns, flows, quotient, ways, slowdown, options.granularity);
  sim::Player player(plan, cast, quotient, ways, options.cancel, options.progress);
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

}  // namespace

Result simulate(Plan&& plan, const Cluster& cluster, const SimulateOptions& options) {
  Result result = play(plan, cluster, options);
  result.plan = std::move(plan);
  return result;
}

Result simulate(const Plan& plan, const Cluster& cluster, const SimulateOptions& options) {
  Result result = play(plan, cluster, options);
  result.plan = plan;
  return result;
}

}  // namespace foreshard
