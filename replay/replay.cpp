#include "replay/replay.h"

#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "replay/cast.h"
#include "replay/flows.h"
#include "replay/light_clock.h"
#include "replay/patterns.h"
#include "replay/player.h"
#include "replay/quotient.h"
#include "replay/validate.h"
#include "replay/ways.h"

namespace foreshard {
namespace {

// Trace::makespan is in nanoseconds of 64 bits.
constexpr double kLongestRun = 9e9;

std::vector<LinkClass> loads(const Network& network, const player::Quotient& quotient, const Played& played) {
  std::vector<LinkClass> links = quotient.links;
  for (std::size_t l = 0; l < links.size(); ++l) {
    links[l].name = network.name(links[l].links.front());
    links[l].bytes = played.link_bytes[l];
    links[l].busy = {played.link_busy[l]};
  }
  return links;
}

}  // namespace

struct Replay::Folded {
  Network network;
  Ranks ranks;
  std::vector<double> slowdown;  // [rank]
  player::Patterns patterns;
  player::Flows flows;
  player::Quotient quotient;
  player::Ways ways;

  Folded(const Plan& plan, const Cluster& cluster, const ReplayOptions& options)
      : network((player::check_playable(plan), cluster)), ranks(plan) {
    player::check_placed(plan, ranks, network);
    slowdown = player::check_stragglers(options, ranks.count());
    patterns = player::find_patterns(plan);
    flows = player::find_flows(plan, patterns, ranks, network);
    quotient = player::fold(plan, ranks, network, patterns, flows, slowdown, options.folding,
                            options.granularity == Granularity::Stage, options.one_class_per_role);
    ways = player::find_ways(plan, ranks, patterns, flows, quotient);
  }
};

Replay::Replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options)
    : plan_(plan), options_(options), folded_(std::make_unique<const Folded>(plan, cluster, options)) {
  FS_ASSERT(options.runs >= 1 && (options.runs == 1 || !options.memory));
  FS_ASSERT(!options.measured || (options.granularity == Granularity::Op && options.folding == Folding::None));
}

Replay::~Replay() = default;

const std::vector<RankClass>& Replay::classes() const { return folded_->quotient.classes; }

Played Replay::play(player::Clock& clock) const {
  const Folded& f = *folded_;
  const player::Cast cast =
      player::make_cast(plan_, f.patterns, f.flows, f.quotient, f.ways, f.slowdown, options_.granularity, options_.runs);
  player::Player player(clock, plan_, cast, f.quotient, f.ways, options_);
  player.play();
  if (!(player.makespan() < kLongestRun))
    throw Error("plan", "costs", "a run of " + std::to_string(player.makespan()) + " s", "less than 285 years");

  Played played{.makespan = player.makespan(), .events = player.events(), .spans = player.take_spans()};
  for (std::size_t l = 0; l < f.quotient.links.size(); ++l) {
    played.link_bytes.push_back(player.link_use().bytes(f.quotient.bundle_of[l]));
    played.link_busy.push_back(player.link_use().busy(f.quotient.bundle_of[l]).value);
  }
  return played;
}

Result Replay::result(Played played) const {
  Result result;
  result.granularity = options_.granularity;
  result.folding = options_.folding;
  result.makespan_s = played.makespan;
  result.engine_events = played.events;
  result.trace.plan_hash = program_hash(plan_);
  result.trace.makespan = to_nanoseconds({played.makespan});
  result.trace.links = loads(folded_->network, folded_->quotient, played);
  result.trace.spans = std::move(played.spans);
  result.trace.classes = folded_->quotient.classes;
  if (options_.memory) result.memory = memory_timeline(plan_, result.trace, {options_.memory_events});
  return result;
}

double makespan_of(const Plan& plan, const Cluster& cluster, const ReplayOptions& options) {
  player::LightClock clock;
  return Replay(plan, cluster, options).play(clock).makespan;
}

Result replay(const Plan& plan, const Cluster& cluster, player::Clock& clock, const ReplayOptions& options) {
  const Replay replay(plan, cluster, options);
  return replay.result(replay.play(clock));
}

}  // namespace foreshard
