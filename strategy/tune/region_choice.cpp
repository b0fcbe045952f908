#include "strategy/tune/region_choice.h"

#include <algorithm>
#include <optional>

#include "core/base/at.h"
#include "core/base/count_text.h"
#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "replay/replay.h"
#include "strategy/estimate/isolated_times.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/residency/plan_offload.h"
#include "strategy/tune/role_trial.h"

namespace foreshard {

namespace {

constexpr double kGoodCopy = 0.95;  // of the link's bandwidth
constexpr int kRegionLevels = 16;   // budgets between the peaks of keeping and of fetching everything
constexpr int kRegionsBelow = 8;    // ... and below, each a tenth smaller

struct TimedLayers {
  std::vector<OffloadRegion> layers = {};  // of the only role, as operations of the planner
  PcieLink link = {};                      // of what brings parameters: copies, and gathers where they are cut
};

// From a plan that brings every layer by itself.
class LayerTiming {
 public:
  LayerTiming(const Plan& plan, const Cluster& cluster)
      : plan_(plan), network_(cluster), ranks_(plan), isolated_(plan, cluster) {
    times_.layers.resize(role().layers.size());
  }

  TimedLayers all() {
    for (const Work work : {Work::F, Work::B}) {
      const auto does = [&](const Action& action) { return !action.does.empty() && action.does.front().work == work; };
      if (const auto action = std::ranges::find_if(role().actions, does); action != role().actions.end())
        walk(action->segment, work == Work::F);
    }
    if (on_link_ > Seconds{} && brought_ > Bytes{})
      times_.link.bandwidth = {static_cast<double>(brought_.value) / on_link_.value};
    return std::move(times_);
  }

 private:
  const Role& role() const { return plan_.roles.front(); }

  void walk(SegmentId segment, bool forward) {
    const std::vector<Instruction>& runs = plan_.segments[segment.index()].instructions;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const Instruction& run = runs[i];
      if (!run.layer.valid()) continue;
      OffloadRegion& layer = times_.layers[run.layer.index()];
      const Cost& cost = plan_.costs.front().by_segment[segment.index()][i];
      const Seconds taken = {isolated_.duration({0}, run, cost)};
      if (std::holds_alternative<Compute>(run.what)) (forward ? layer.forward : layer.backward) += taken;
      if (forward && run.name == "gather") on_link_ += taken;
      if (!forward || run.name != "bring parameters") continue;
      layer.parameters += *run.writes.front().length;
      brought_ += *run.writes.front().length;
      times_.link.setup = to_seconds(cost.busy);
      on_link_ += wire_time(run, cost);
    }
  }

  Seconds wire_time(const Instruction& copy, const Cost& cost) const {
    const Space home = role().buffers[copy.reads.front().buffer.index()].space;
    const Endpoint end = home == Space::Nvme ? Endpoint::Nvme : Endpoint::HostMemory;
    const Route route = network_.host_route(ranks_.device(ranks_.first({0})), end, true);
    const double bytes = static_cast<double>(std::get<Copy>(copy.what).bytes.value) * cost.wire_factor;
    return route.rate.value > 0 ? Seconds{bytes / route.rate.value} : Seconds{};
  }

  const Plan& plan_;
  Network network_;
  Ranks ranks_;
  IsolatedTimes isolated_;
  TimedLayers times_ = {};
  Bytes brought_ = {};
  Seconds on_link_ = {};
};

class RegionChoices {
 public:
  RegionChoices(const Model& model, const Cluster& cluster, const Strategy& strategy, const TunedRows& rows,
                const LowerOptions& options, const Lowering& base, int window, const TimedLayers& times)
      : model_(model),
        cluster_(cluster),
        strategy_(strategy),
        rows_(rows),
        options_(options),
        trial_(base, options.pack_by_order) {
    options_.ignore_memory = true;
    std::vector<Bytes> sizes;
    for (const OffloadRegion& layer : times.layers) sizes.push_back(layer.parameters);
    rule_ = {.window = window, .region_of_layer = regions_of_least(sizes, times.link.size_for(kGoodCopy))};
    job_ = {.link = times.link, .uploads_master = false, .gradient_apart = true};
    job_.regions.resize(at(rule_.region_of_layer.back()) + 1);
    for (std::size_t layer = 0; layer < times.layers.size(); ++layer) {
      OffloadRegion& region = job_.regions[at(rule_.region_of_layer[layer])];
      region.parameters += times.layers[layer].parameters;
      region.forward += times.layers[layer].forward, region.backward += times.layers[layer].backward;
    }
  }

  std::variant<RegionRule, Infeasible> best() {
    const RegionRule fetched = on_demand();
    const std::optional<RegionRule> planned = largest_that_fits();
    const Bytes least = arena(fetched);
    if (planned && (least > room() || seconds(*planned) <= seconds(fetched))) return *planned;
    if (least <= room() || strategy_.offload.budget.value == 0) return fetched;
    return Infeasible{.reason = "policy " + strategy_.policy + " reaches an arena of " + in_size(least) + ", the budget is " +
                                in_size(room()),
                      .would_help = {budget_that_fits(least), "--micro-batch 1", "--recompute full"}};
  }

 private:
  Bytes room() const {
    return strategy_.offload.budget.value > 0 ? std::min(strategy_.offload.budget, trial_.room(0)) : trial_.room(0);
  }
  Bytes arena(const RegionRule& rule) {
    for (StateRow& row : trial_.lowering.tables.state)
      if (std::holds_alternative<RegionRule>(row.parameters.stays.rule)) row.parameters.stays.rule = rule;
    return trial_.arena(0, room());
  }
  double seconds(const RegionRule& rule) const {
    TunedRows rows = rows_;
    rows.regions = rule;
    const auto answer = lower(model_, cluster_, strategy_, options_, rows);
    const auto* lowered = std::get_if<Lowered>(&answer);
    FS_ASSERT(lowered != nullptr);
    return makespan_of(lowered->plan, cluster_, {.granularity = Granularity::Layer, .memory = false});
  }

  RegionRule with(std::vector<RegionChoice> choices) const {
    RegionRule rule = rule_;
    rule.choices = std::move(choices);
    return rule;
  }
  RegionRule on_demand() const {
    std::vector<RegionChoice> choices(job_.regions.size());
    for (int region = 0; region + 1 < static_cast<int>(choices.size()); ++region) choices[at(region)].fetched_by = region;
    return with(std::move(choices));
  }

  std::optional<RegionRule> at_level(int level) const {
    const Bytes kept = offload_timing(job_, std::vector<RegionChoice>(job_.regions.size())).peak;
    const Bytes fetched = std::min(kept, offload_timing(job_, on_demand().choices).peak);
    Bytes budget = {kept.value - (kept.value - fetched.value) * std::min(level, kRegionLevels) / kRegionLevels};
    for (int below = kRegionLevels; below < level; ++below) budget = {budget.value * 9 / 10};
    auto found = plan_offload(job_, budget, {.window = rule_.window});
    if (auto* plan = std::get_if<OffloadPlan>(&found)) return with(std::move(plan->choices));
    return {};
  }

  // The planner's choice for the largest budget under which the program that is built fits.
  std::optional<RegionRule> largest_that_fits() {
    std::optional<RegionRule> best;
    int few = -1, enough = kRegionLevels + kRegionsBelow;
    while (enough - few > 1) {
      const int middle = (few + enough) / 2;
      std::optional<RegionRule> rule = at_level(middle);
      const bool fits = rule && arena(*rule) <= room(), found = rule.has_value();
      if (fits) best = std::move(rule);
      (fits || !found ? enough : few) = middle;
    }
    return best;
  }

  const Model& model_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  const TunedRows& rows_;
  LowerOptions options_;
  RoleTrial trial_;
  RegionRule rule_ = {};  // without choices
  OffloadJob job_ = {};
};

}  // namespace

std::variant<RegionRule, Infeasible> best_regions(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                                  const TunedRows& rows, const LowerOptions& options) {
  const auto begun = begin_lowering(model, cluster, strategy, rows);
  if (const auto* refused = std::get_if<Infeasible>(&begun)) return *refused;
  const Lowering& base = std::get<Lowering>(begun);
  FS_ASSERT(base.tables.schedule.ranks() == 1);  // resolve_policy refuses others
  LowerOptions anyway = options;
  anyway.ignore_memory = true;
  const auto trial = lower(model, cluster, strategy, anyway, rows);
  if (const auto* refused = std::get_if<Infeasible>(&trial)) return *refused;
  const TimedLayers times = LayerTiming(std::get<Lowered>(trial).plan, cluster).all();
  const int window = std::get<RegionRule>(base.tables.state.back().parameters.stays.rule).window;
  return RegionChoices(model, cluster, strategy, rows, options, base, window, times).best();
}

}  // namespace foreshard
