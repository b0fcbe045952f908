#include "strategy/search/search_refine.h"

#include <algorithm>

#include "strategy/estimate/estimate.h"
#include "strategy/frameworks/framework_allocation.h"
#include "strategy/search/search_failures.h"
#include "strategy/search/search_kept.h"
#include "strategy/tune/tune.h"

namespace foreshard {

Refiner::Refiner(const Model& model, const Cluster& cluster, const SearchOptions& options)
    : model_(model), cluster_(cluster), options_(options), asks_framework_(options.base.framework != Strategy{}.framework) {}

double Refiner::least_excess() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(least_excess_, 0);
}

// The most bytes of a rank. Strategies that differ only in their overlap or rank order need the same.
std::optional<double> Refiner::framework_memory(const Strategy& strategy, double screened) const {
  Strategy alike = strategy;
  alike.communication.overlap = {}, alike.placement = {};
  const std::string key = to_json(alike);
  double bytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) bytes = known->second;
  }
  if (bytes == 0) {
    const auto held = framework_allocation(model_, cluster_, strategy);
    const auto* allocation = std::get_if<FrameworkAllocation>(&held);
    bytes = allocation ? allocation->largest() : kNever;
    const std::scoped_lock lock(mutex_);
    known_.emplace(key, bytes);
  }
  if (bytes <= static_cast<double>(gpu_of(cluster_, cluster_.nodes.front().shape.gpu).memory.value)) return bytes;
  if (screened > 0 && bytes < kNever) {
    const std::scoped_lock lock(mutex_);
    const double excess = bytes / screened;
    least_excess_ = least_excess_ > 0 ? std::min(least_excess_, excess) : excess;
  }
  return {};
}

std::optional<Candidate> Refiner::refined(const Strategy& strategy, const Point& point, const Screened& screened) const {
  std::optional<Candidate> candidate;
  isolated(
      options_, [&] { return strategy; }, [&] { candidate = evaluated(strategy, point, screened); });
  return candidate;
}

std::optional<Candidate> Refiner::evaluated(const Strategy& strategy, const Point& point, const Screened& screened) const {
  const bool split_known = strategy.pipeline.layer_split != "auto";
  std::optional<double> bytes;
  if (asks_framework_ && split_known) {  // before the longer work
    bytes = framework_memory(strategy, screened.needs);
    if (!bytes) return {};
  }
  const auto answer = tuned_plan(model_, cluster_, strategy,
                                 {.ignore_memory = asks_framework_, .pack_by_order = false, .check = false, .profile = options_.profile});
  if (std::holds_alternative<Infeasible>(answer)) return {};
  const Lowered& lowered = std::get<Lowered>(answer);
  if (asks_framework_ && !split_known) {
    bytes = framework_memory(lowered.strategy, 0);
    if (!bytes) return {};
  }
  Candidate candidate{.point = point, .strategy = lowered.strategy, .screened = screened};
  candidate.estimate = refine(lowered, cluster_);
  if (bytes) {
    candidate.estimate.peak = {static_cast<std::int64_t>(*bytes)};
    candidate.estimate.margin = gpu_of(cluster_, cluster_.nodes.front().shape.gpu).memory - candidate.estimate.peak;
  }
  candidate.score =
      score(options_.objective, point, candidate.estimate.time.value, static_cast<double>(candidate.estimate.peak.value));
  if (!is_simple(candidate.strategy)) candidate.handicap = 1 + options_.noise;
  return candidate;
}

}  // namespace foreshard
