#include "strategy/search/search_refine.h"

#include <algorithm>

#include "strategy/estimate/estimate.h"
#include "strategy/frameworks/framework_allocation.h"
#include "strategy/search/search_failures.h"
#include "strategy/search/search_kept.h"
#include "strategy/tune/tune.h"

namespace foreshard {

Refiner::Refiner(const Model& model, const Cluster& cluster, const SearchOptions& options)
    : model_(model), cluster_(cluster), options_(options), asks_framework_(names_framework(options.base)) {
  if (asks_framework_)
    errors_ = memory_spread(shipped_comparisons(), options.base.framework, options.base.optimizer.lora.any());
}

double Refiner::least_excess() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(least_excess_, 0);
}

// Strategies that differ only in their overlap or rank order need the same.
std::optional<FrameworkAllocation> Refiner::framework_memory(const Strategy& strategy, double screened) const {
  Strategy alike = strategy;
  alike.communication.overlap = {}, alike.placement = {};
  const std::string key = to_json(alike);
  std::optional<FrameworkAllocation> allocation;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) allocation = known->second;
  }
  if (!allocation) {
    auto held = framework_allocation(model_, cluster_, strategy);
    const bool taken = std::holds_alternative<FrameworkAllocation>(held);
    allocation = taken ? std::move(std::get<FrameworkAllocation>(held)) : FrameworkAllocation{};
    const std::scoped_lock lock(mutex_);
    known_.emplace(key, *allocation);
  }
  if (allocation->ranks.empty()) return {};
  const double capacity = static_cast<double>(gpu_of(cluster_, cluster_.nodes.front().shape.gpu).memory.value);
  if (probability_of_fitting(allocation->largest(), capacity, errors_) >= options_.least_probability) return allocation;
  if (screened > 0) {
    const std::scoped_lock lock(mutex_);
    const double excess = allocation->largest() * margin_of(options_.least_probability, errors_) / screened;
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
  std::optional<FrameworkAllocation> allocation;
  if (asks_framework_ && split_known) {  // before the longer work
    allocation = framework_memory(strategy, screened.needs);
    if (!allocation) return {};
  }
  const auto answer =
      tuned_plan(model_, cluster_, strategy,
                 {.ignore_memory = asks_framework_, .pack_by_order = false, .check = false, .profile = options_.profile});
  if (std::holds_alternative<Infeasible>(answer)) return {};
  const Lowered& lowered = std::get<Lowered>(answer);
  if (asks_framework_ && !split_known) {
    allocation = framework_memory(lowered.strategy, 0);
    if (!allocation) return {};
  }
  Candidate candidate{.point = point, .strategy = lowered.strategy, .screened = screened};
  candidate.estimate = refine(lowered, cluster_);
  candidate.verdict = verdict(lowered.plan, cluster_, lowered.strategy, allocation);
  if (candidate.verdict.kind == Verdict::Kind::DoesNotFit) return {};
  if (allocation) {
    candidate.estimate.peak = candidate.verdict.needs;
    candidate.estimate.margin = candidate.verdict.capacity - candidate.estimate.peak;
  }
  candidate.score =
      score(options_.objective, point, candidate.estimate.time.value, static_cast<double>(candidate.estimate.peak.value));
  if (!is_simple(candidate.strategy)) candidate.handicap = 1 + options_.noise;
  return candidate;
}

}  // namespace foreshard
