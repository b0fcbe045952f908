#include "replay/replay.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "replay/flow_paths.h"
#include "replay/flows.h"
#include "replay/light_clock.h"
#include "replay/patterns.h"
#include "replay/player.h"
#include "replay/player_input.h"
#include "replay/quotient.h"
#include "replay/rank_speed.h"
#include "replay/validate.h"

namespace foreshard {
namespace {

// Trace::makespan is in nanoseconds of 64 bits.
constexpr double kLongestRun = 9e9;

}  // namespace

struct Replay::Folded {
  Network network;
  Ranks ranks;
  std::vector<player::RankSpeed> paces;  // [rank]
  player::Patterns patterns;
  player::Flows flows;
  player::Quotient quotient;
  player::FlowPaths paths;
  player::PlayerInput input;

  Folded(const Plan& plan, const Cluster& cluster, const ReplayOptions& options)
      : network((player::check_playable(plan), cluster)), ranks(plan) {
    player::check_placed(plan, ranks, network);
    paces = player::find_paces(plan, ranks, options);
    patterns = player::find_patterns(plan);
    flows = player::find_flows(plan, patterns, ranks, network);
    quotient = player::fold(plan, ranks, network, patterns, flows, paces, options.folding,
                            options.granularity == Granularity::Stage, options.one_class_per_role);
    paths = player::find_flow_paths(plan, ranks, patterns, flows, quotient);
    input = player::make_player_input(plan, patterns, flows, quotient, paths, paces, options.granularity, options.runs);
  }
};

Replay::Replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options)
    : plan_(plan), options_(options), folded_(std::make_unique<const Folded>(plan, cluster, options)) {
  FS_ASSERT(options.runs >= 1 && (options.runs == 1 || !options.memory));
  FS_ASSERT(!options.measured || (options.granularity == Granularity::Op && options.folding == Folding::None));
}

Replay::~Replay() = default;

const std::vector<RankClass>& Replay::classes() const { return folded_->quotient.classes; }

std::size_t Replay::spans() const { return folded_->input.spans(); }

std::size_t Replay::links() const { return folded_->quotient.links.size(); }

void Replay::play(player::Clock& clock, Played& played) const {
  const Folded& f = *folded_;
  player::Player player(clock, plan_, f.input, f.quotient, f.paths, options_, played.spans);
  player.play();
  if (!(player.makespan() < kLongestRun))
    throw Error("plan", "costs", "a run of " + std::to_string(player.makespan()) + " s", "less than 285 years");
  played.makespan = player.makespan();
  played.events = player.events();
  for (std::size_t l = 0; l < played.links.size(); ++l)
    played.links[l] = {player.link_use().bytes(f.quotient.bundle_of[l]), player.link_use().busy(f.quotient.bundle_of[l])};
}

ResultFrame Replay::unplayed() const {
  ResultFrame unplayed;
  Result& result = unplayed.result;
  result.granularity = options_.granularity;
  result.folding = options_.folding;
  result.trace.plan_hash = program_hash(plan_);
  result.trace.classes = folded_->quotient.classes;
  result.trace.spans.resize(spans());
  result.trace.links = folded_->quotient.links;
  for (LinkClass& link : result.trace.links) link.name = folded_->network.name(link.links.front());
  if (!options_.memory) return unplayed;
  PlanMemory& memory = unplayed.memory.emplace(plan_, result.trace.classes);
  const std::vector<player::PlayerInput::Player>& players = folded_->input.players;
  for (std::size_t c = 0; c < players.size(); ++c)
    for (std::size_t s = 0; s < players[c].steps->size(); ++s)
      if (const player::SegmentSteps* steps = (*players[c].steps)[s])
        for (const player::Step& step : steps->steps)
          memory.prepare({static_cast<std::int32_t>(c)}, {static_cast<std::int32_t>(s)}, step.first, step.count);
  return unplayed;
}

Result Replay::result(const Played& played) const { return add_played(unplayed(), options_, played); }

Result add_played(ResultFrame unplayed, const ReplayOptions& options, const Played& played) {
  Result result = std::move(unplayed.result);
  result.makespan_s = played.makespan;
  result.engine_events = played.events;
  result.trace.makespan = to_nanoseconds({played.makespan});
  for (std::size_t l = 0; l < played.links.size(); ++l) {
    result.trace.links[l].bytes = played.links[l].bytes;
    result.trace.links[l].busy = played.links[l].busy;
  }
  std::copy(played.spans.begin(), played.spans.end(), result.trace.spans.begin());
  if (unplayed.memory) result.memory = unplayed.memory->timeline(result.trace, {options.memory_events});
  return result;
}

LocalReplayOutput::LocalReplayOutput(const Replay& replay, player::Clock& clock)
    : spans_(replay.spans()), links_(replay.links()) {
  played_ = {.spans = spans_, .links = links_};
  replay.play(clock, played_);
}

static double makespan_of_runs(const Plan& plan, const Cluster& cluster, ReplayOptions options, int runs) {
  options.runs = runs;
  if (runs > 1) options.memory = options.memory_events = false;
  player::LightClock clock;
  return LocalReplayOutput(Replay(plan, cluster, options), clock)->makespan;
}

// A forward that precedes all updates of a run and reads an older version than the one that the first of them replaces.
static bool is_one_update_late(const Role& role) {
  std::optional<std::int32_t> read;
  for (const Action& action : role.actions)
    for (const Does& does : action.does) {
      if (does.work == Work::F && !read) read = does.version;
      if (does.work == Work::Update) return read && *read + 1 < does.version;
    }
  return false;
}

bool has_steady_period(const Plan& plan) { return runs_overlap(plan) || std::ranges::any_of(plan.roles, is_one_update_late); }

double steady_period(const Plan& plan, const Cluster& cluster, const ReplayOptions& options, int runs) {
  FS_ASSERT(runs >= 2);
  const int half = runs / 2;
  ReplayOptions quiet = options;
  quiet.progress = {}, quiet.memory = quiet.memory_events = false;
  return (makespan_of_runs(plan, cluster, quiet, runs) - makespan_of_runs(plan, cluster, quiet, half)) / (runs - half);
}

double makespan_of(const Plan& plan, const Cluster& cluster, const ReplayOptions& options) {
  if (options.runs == 1 && has_steady_period(plan)) return steady_period(plan, cluster, options);
  return makespan_of_runs(plan, cluster, options, options.runs);
}

Result replay(const Plan& plan, const Cluster& cluster, player::Clock& clock, const ReplayOptions& options) {
  const Replay replay(plan, cluster, options);
  Result result = replay.result(*LocalReplayOutput(replay, clock));
  if (options.runs == 1 && has_steady_period(plan)) result.period_s = steady_period(plan, cluster, options);
  return result;
}

}  // namespace foreshard
