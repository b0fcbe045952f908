#include "strategy/search/search_offload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "strategy/cost/runtime_policy.h"
#include "strategy/search/search_framework.h"
#include "strategy/search/search_kept.h"
#include "strategy/search/search_relax.h"
#include "strategy/search/search_space.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

constexpr double kWorthwhile =
    0.97;  // a point that memory rules out is tried if its screened score is below this share of the winner's

// Ways to offload, fastest first: each moves everything that the one before it moves, and more.
std::vector<OffloadChoice> ways() {
  std::vector<OffloadChoice> all = {{.optimizer = Space::PinnedHost}};
  all.push_back(all.back());
  all.back().parameters = all.back().gradients = Space::PinnedHost;
  all.push_back(all.back());
  all.back().activations = OffloadedActivations::Inputs;
  return all;
}

// Of the frameworks with rules, only DeepSpeed's rules cover host memory.
bool may_offload(const SearchOptions& options) {
  const Strategy& base = options.base;
  const auto fixed = [&](const char* path) { return std::ranges::find(options.fixed, path) != options.fixed.end(); };
  if (base.offload != OffloadChoice{} || find_policy(base.policy) || fixed("offload_optimizer")) return false;
  const auto runner = find_runner(base.framework);
  return !runner || *runner == Runner::DeepSpeed;
}

SearchOptions with_offload(const SearchOptions& options, const OffloadChoice& offload) {
  SearchOptions away = options;
  away.base.offload = offload;
  return away;
}

// Halves the micro-batch of `point` until it fits with optimizer states in host memory. Empty: none of at least `least` fits.
std::optional<Candidate> largest_that_fits(const FurtherSearch& search, Point point, std::int64_t least, SearchResult& result) {
  const SearchOptions away = with_offload(search.options, ways().front());
  const int layers = std::get<Transformer>(search.model.shape).layers;
  const Refiner refiner(search.model, search.cluster, away);
  for (; point.micro_batch >= least; point.micro_batch /= 2) {
    ++result.refined;
    if (auto candidate = refiner.refined(strategy_at(away.base, point, layers), point)) return candidate;
    if (point.micro_batch % 2 != 0) return {};
  }
  return {};
}

}  // namespace

std::optional<SearchResult> search_offloaded(const FurtherSearch& search) {
  if (!may_offload(search.options)) return {};
  for (const OffloadChoice& way : ways()) {
    const SearchOptions away = with_offload(search.options, way);
    if (states_exceed_memory(search.model, search.cluster, away.base)) continue;
    auto answer = search.on_all(search.cluster, away);
    if (auto* result = std::get_if<SearchResult>(&answer)) return std::move(*result);
  }
  return {};
}

void offload_too(const FurtherSearch& search, SearchResult& result) {
  if (!may_offload(search.options) || search.options.objective != Objective::Time || result.interrupted) return;
  if (!std::holds_alternative<Transformer>(search.model.shape) || result.ranked.empty() ||
      !result.ranked.front().strategy.stages.empty())
    return;
  const Candidate& best = result.ranked.front();
  const auto fixed = [&](const char* path) {
    return std::ranges::find(search.options.fixed, path) != search.options.fixed.end();
  };
  std::vector<Point> points;
  if (const auto& other = result.without_memory_limit; other && other->score < best.screened.time * kWorthwhile)
    points.push_back(other->point);
  if (best.point.recompute != RecomputeKind::None && !fixed("recompute")) {
    points.push_back(best.point);
    points.back().recompute = RecomputeKind::None, points.back().recompute_layers = 0;
  }
  const double enough = best.score;
  const std::int64_t least = best.point.micro_batch;
  for (const Point& point : points)
    if (const auto candidate = largest_that_fits(search, point, least, result); candidate && candidate->score < enough) {
      if (search.options.found) search.options.found(*candidate);
      take_place(result.ranked, *candidate);
    }
}

}  // namespace foreshard
