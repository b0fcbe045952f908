// What a search ranks by, and how the simulator changes the order.
#include <algorithm>
#include <cmath>
#include <utility>

#include "strategy/search/search_kept.h"

namespace foreshard {

const char* name_of(Objective objective) { return objective_names()[static_cast<std::size_t>(objective)].c_str(); }
const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names = {"time", "memory", "cost", "energy", "pareto"};
  return names;
}
const std::vector<std::string>& searched_options() {
  static const std::vector<std::string> paths = {"tp",
                                                 "cp",
                                                 "pp",
                                                 "dp",
                                                 "virtual_stages",
                                                 "micro_batch",
                                                 "zero",
                                                 "recompute",
                                                 "overlap",
                                                 "schedule",
                                                 "sequence_parallel",
                                                 "placement",
                                                 "zero_group",
                                                 "offload_optimizer",
                                                 "ep",
                                                 "etp",
                                                 "expert_dispatcher",
                                                 "delay_wgrad"};
  return paths;
}

double score(Objective objective, const Point& point, double time, double peak) {
  switch (objective) {
    case Objective::Memory: return peak;
    case Objective::Cost:
    case Objective::Energy: return time * point.tp * point.cp * point.pp * point.dp;
    case Objective::Time:
    case Objective::Pareto: return time;
  }
  return time;
}

int Candidate::gpus() const {
  if (strategy.stages.empty()) return point.tp * point.cp * point.pp * point.dp + serving_gpus(strategy);
  int ranks = 0;
  for (const StageDegrees& stage : strategy.stages) ranks += stage.dp * stage.tp;
  return ranks;
}

bool same_family(const Point& a, const Point& b) {
  const auto key = [](const Point& p) {
    return std::tie(p.tp, p.cp, p.pp, p.dp, p.ep, p.etp, p.virtual_stages, p.micro_batch, p.schedule);
  };
  return key(a) == key(b);
}

bool is_simple(const Strategy& strategy) {
  const RecomputeKind kind = strategy.recompute.kind;
  return strategy.stages.empty() && kind != RecomputeKind::Each && kind != RecomputeKind::Graph &&
         std::ranges::count(strategy.pipeline.layer_split, ',') <= 2;
}

Candidate better_of(Candidate a, Candidate b) {
  if (better(b, a)) std::swap(a, b);
  const auto note = [&](double score, const Strategy& strategy) {
    const double gain = 1 - score / a.score;
    if (gain > (a.less_simple ? a.less_simple->gain : 0)) a.less_simple = {gain, strategy};
  };
  note(b.score, b.strategy);
  if (b.less_simple) note(b.score * (1 - b.less_simple->gain), b.less_simple->strategy);
  return a;
}

void take_place(std::vector<Candidate>& ranked, const Candidate& candidate) {
  const auto other = std::find_if(ranked.begin(), ranked.end(),
                                  [&](const Candidate& each) { return same_family(each.point, candidate.point); });
  Candidate best = candidate;
  if (other != ranked.end()) {
    best = better_of(std::move(*other), std::move(best));
    ranked.erase(other);
  }
  ranked.insert(std::upper_bound(ranked.begin(), ranked.end(), best, better), best);
}

std::vector<Candidate> best_of_families(const std::vector<Candidate>& all) {
  std::vector<Candidate> best;
  for (const Candidate& candidate : all) take_place(best, candidate);
  return best;
}

std::vector<Family> merged(const std::vector<ScreeningTotals>& tallies, BestFamilies ScreeningTotals::*which, int most) {
  std::vector<Family> families;
  for (const ScreeningTotals& tally : tallies)
    families.insert(families.end(), (tally.*which).all().begin(), (tally.*which).all().end());
  std::sort(families.begin(), families.end());
  const auto limit = static_cast<std::size_t>(std::max(1, most));
  if (families.size() < limit) return families;
  families.resize(limit);
  for (Family& family : families)
    std::erase_if(family.variants, [&](const Kept& kept) { return kept.score > families.back().variants.front().score; });
  return families;
}

std::vector<Kept> near_variants(const std::vector<Family>& families, std::span<const Candidate> of, double best,
                                double enough) {
  constexpr double kBehind = 1.01;
  std::vector<Kept> near;
  for (const Candidate& candidate : of)
    for (const Family& family : families)
      if (candidate.score <= best * kBehind && same_family(family.variants.front().point, candidate.point))
        for (const Kept& kept : family.variants)
          if (kept.point != candidate.point && kept.score <= std::min(enough, family.best_of(kept.point.zero).score * kBehind))
            near.push_back(kept);
  return near;
}

std::vector<Family> merged_bins(const std::vector<ScreeningTotals>& tallies) {
  std::vector<Family> thin;
  for (std::size_t bin = 0; bin < kMemoryBins; ++bin) {
    std::optional<Kept> best;
    for (const ScreeningTotals& tally : tallies)
      if (tally.bins[bin] && (!best || *tally.bins[bin] < *best)) best = tally.bins[bin];
    if (best) thin.push_back({{*best}});
  }
  return thin;
}

bool bounded(const SearchOptions& options) {
  return options.prune && options.objective != Objective::Memory && options.objective != Objective::Pareto;
}

bool tries_recompute_graphs(const SearchOptions& options) {
  const bool fixed = std::find(options.fixed.begin(), options.fixed.end(), "recompute") != options.fixed.end();
  return options.schedules && !fixed && options.base.framework == "foreshard" && options.objective != Objective::Memory;
}

// Does not depend on the threads: ties are broken by the order in the space.
static std::optional<RuledOut> best_ruled_out(const std::vector<ScreeningTotals>& tallies, Kept ScreeningTotals::*which) {
  const Kept* best = nullptr;
  for (const ScreeningTotals& tally : tallies)
    if ((tally.*which).score < kNever && (!best || tally.*which < *best)) best = &(tally.*which);
  if (!best) return {};
  return RuledOut{.score = best->score, .point = best->point};
}

void add_up(const std::vector<ScreeningTotals>& tallies, SearchResult& result) {
  for (const ScreeningTotals& tally : tallies) {
    result.enumerated += tally.enumerated, result.evaluated += tally.evaluated;
    result.bound = std::min(result.bound, tally.bound);
    result.pruned.shape += tally.pruned.shape, result.pruned.memory += tally.pruned.memory;
    result.pruned.bound += tally.pruned.bound, result.pruned.framework += tally.pruned.framework,
        result.pruned.redone += tally.pruned.redone;
  }
  result.without_memory_limit = best_ruled_out(tallies, &ScreeningTotals::without_memory_limit);
  result.without_framework = best_ruled_out(tallies, &ScreeningTotals::without_framework);
}

std::vector<Kept> merged_sample(const std::vector<ScreeningTotals>& tallies, int most) {
  Sample all(most);
  for (const ScreeningTotals& tally : tallies) all.offer(tally.sample);
  std::vector<Kept> points;
  for (const auto& [hash, kept] : all.all()) points.push_back(kept);
  std::sort(points.begin(), points.end(), [](const Kept& a, const Kept& b) { return a.order < b.order; });
  return points;
}

std::vector<Candidate> front_of(std::vector<Candidate> all) {
  std::ranges::stable_sort(all, {}, &Candidate::score);
  std::vector<Candidate> front;
  for (Candidate& candidate : all)
    if (front.empty() || candidate.estimate.peak < front.back().estimate.peak) front.push_back(std::move(candidate));
  return front;
}

// Scores that look equal when printed are ordered by memory, least first.
static void settle_ties(std::vector<Candidate>& sorted) {
  constexpr double kSame = 1 + 1e-5;
  const auto value = [](const Candidate& candidate) { return candidate.score * candidate.handicap; };
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto last = std::find_if(first, sorted.end(), [&](const Candidate& c) { return value(c) > value(*first) * kSame; });
    std::stable_sort(first, last, [](const Candidate& a, const Candidate& b) { return a.estimate.peak < b.estimate.peak; });
    first = last;
  }
}

// Sorts, and removes the worse of each pair of twins (SearchOptions::noise).
static void sort_and_drop_twins(std::vector<Candidate>& ranked, double noise) {
  constexpr double kLessMemory = 0.95;
  const auto twins = [&](const Candidate& best, const Candidate& other) {
    const auto key = [](const Point& p) { return std::tie(p.tp, p.cp, p.pp, p.dp, p.micro_batch); };
    return key(best.point) == key(other.point) && best.simulated.has_value() == other.simulated.has_value() &&
           std::abs(other.score / best.score - 1) < noise &&
           static_cast<double>(other.estimate.peak.value) >= kLessMemory * static_cast<double>(best.estimate.peak.value);
  };
  std::stable_sort(ranked.begin(), ranked.end(), better);
  settle_ties(ranked);
  std::vector<Candidate> kept;
  for (Candidate& candidate : ranked)
    if (std::ranges::none_of(kept, [&](const Candidate& best) { return twins(best, candidate); }))
      kept.push_back(std::move(candidate));
  ranked = std::move(kept);
}

void rerank(std::vector<Candidate>& ranked, int top, Objective objective, double noise, const SimulateAll& simulate) {
  for (bool complete = true; complete;) {
    sort_and_drop_twins(ranked, noise);
    const std::size_t count = std::min(ranked.size(), static_cast<std::size_t>(std::max(0, top)));
    std::vector<const Candidate*> next;
    for (std::size_t i = 0; i < count; ++i)
      if (!ranked[i].simulated) next.push_back(&ranked[i]);
    if (next.empty()) break;
    const std::vector<std::optional<double>> seconds = simulate(next);
    for (std::size_t i = 0, answer = 0; i < count; ++i) {
      Candidate& candidate = ranked[i];
      if (candidate.simulated) continue;
      candidate.simulated = seconds[answer++];
      complete &= candidate.simulated.has_value();
      if (candidate.simulated && !std::isnan(*candidate.simulated))
        candidate.score =
            score(objective, candidate.point, *candidate.simulated, static_cast<double>(candidate.estimate.peak.value));
    }
    std::erase_if(ranked, [](const Candidate& c) { return c.simulated && std::isnan(*c.simulated); });
  }
  sort_and_drop_twins(ranked, noise);
}

}  // namespace foreshard
