#include "strategy/search/search_nodes.h"

#include <algorithm>
#include <utility>

#include "core/base/divisors.h"
#include "core/graph/op_graph.h"
#include "strategy/search/search_kept.h"
#include "strategy/search/search_refine.h"
#include "strategy/search/search_space.h"

namespace foreshard {

namespace {

constexpr int kLookedAt = 2;     // families that are refined before it is known that fewer nodes win
constexpr int kKeptToLook = 32;  // families that screening keeps for that
constexpr double kMostOfPeak = 0.9;
constexpr std::size_t kTold = 8;  // strategies of each number of nodes that enter the ranking

// Transformers only: for layer lists every strategy would be refined, and stages with degrees of their own may use fewer GPUs anyway.
bool may_use_fewer(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  if (!std::holds_alternative<Transformer>(model.shape)) return false;
  const auto fixed = [&](const char* path) { return std::ranges::find(options.fixed, path) != options.fixed.end(); };
  if (options.objective != Objective::Time || cluster.nodes.size() != 1 || cluster.nodes.front().count < 2) return false;
  return !fixed("dp") || options.base.dp == 0;  // a fixed dp, with tp and pp, already determines the number of GPUs
}

// Seconds of an iteration in which `gpus` GPUs run at kMostOfPeak of their peak FLOP/s. Of the FLOPs F(s) of a sequence of length s, the
// part that grows with s^2 is (F(2s) - 2 F(s)) / 2: attention, which counts half because a causal model skips half of it (with packed
// sequences, half of what one of them sees).
double least_seconds(const Model& model, const Cluster& cluster, const Strategy& strategy, std::int64_t gpus) {
  const std::int64_t seq = strategy.batch.seq > 0 ? strategy.batch.seq : std::get<Transformer>(model.shape).max_positions;
  const auto counted = [&](std::int64_t tokens) {
    return model_flops_per_sample(model, tokens, 1, strategy.optimizer.lora).value;
  };
  const double flops = counted(seq), twice = counted(2 * seq);
  const double seen = strategy.batch.packed > 0 ? static_cast<double>(strategy.batch.packed) / static_cast<double>(seq) : 1;
  const double each = peak(gpu_of(cluster, cluster.nodes.front().shape.gpu), strategy.precision).value;
  return (flops - (twice - 2 * flops) / 2 * (1 - seen / 2)) * static_cast<double>(strategy.batch.global) /
         (kMostOfPeak * each * static_cast<double>(gpus));
}

void add_counts(const SearchResult& from, SearchResult& to) {
  to.bound = std::min(to.bound, from.bound);
  to.enumerated += from.enumerated, to.evaluated += from.evaluated, to.refined += from.refined;
  to.pruned.shape += from.pruned.shape, to.pruned.memory += from.pruned.memory, to.pruned.bound += from.pruned.bound;
  to.pruned.redone += from.pruned.redone, to.pruned.framework += from.pruned.framework;
  to.measuring_s += from.measuring_s, to.screening_s += from.screening_s;
  to.interrupted |= from.interrupted;
}

// Refines the strategies on the whole cluster: on its first nodes they cross the same links as on a cluster of only these nodes.
void rank_too(const FurtherSearch& search, std::vector<Candidate> found, SearchResult& result) {
  if (found.size() > kTold) found.resize(kTold);
  const Refiner refiner(search.model, search.cluster, search.options);
  for (const Candidate& candidate : found) {
    const auto here = refiner.refined(candidate.strategy, candidate.point, candidate.screened);
    if (!here) continue;
    if (search.options.found) search.options.found(*here);
    take_place(result.ranked, *here);
  }
}

}  // namespace

void search_fewer_nodes(const FurtherSearch& search, SearchResult& result) {
  if (!may_use_fewer(search.model, search.cluster, search.options)) return;
  const NodeGroup& group = search.cluster.nodes.front();
  std::vector<std::int64_t> counts = divisors(group.count);
  counts.pop_back();
  for (const std::int64_t nodes : std::vector(counts.rbegin(), counts.rend())) {
    if (result.interrupted || result.ranked.empty()) return;
    const double winner = result.ranked.front().score;
    if (least_seconds(search.model, search.cluster, search.options.base, nodes * group.shape.gpus) >= winner) return;
    const Cluster some = with_nodes(search.cluster, static_cast<int>(nodes));
    SearchOptions look = search.options;
    look.refine = std::min(look.refine, kLookedAt), look.shortlist = std::min(look.shortlist, kKeptToLook);
    look.stages = look.best = look.schedules = false;
    look.sample = 0, look.progress = {}, look.found = {};
    auto found = search.on_all(some, look);
    if (std::holds_alternative<Infeasible>(found)) continue;
    add_counts(std::get<SearchResult>(found), result);
    if (std::get<SearchResult>(found).ranked.front().score < winner) {
      SearchOptions all = search.options;
      all.sample = 0, all.progress = {}, all.found = {};
      if (auto more = search.on_all(some, all); std::holds_alternative<SearchResult>(more)) {
        add_counts(std::get<SearchResult>(more), result);
        found = std::move(more);
      }
    }
    rank_too(search, std::move(std::get<SearchResult>(found).ranked), result);
  }
}

}  // namespace foreshard
