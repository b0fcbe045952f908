// What a search ranks by, and how the simulator changes the order.
#include <algorithm>
#include <utility>

#include "strategy/search_kept.h"

namespace foreshard {

const char* name_of(Objective objective) { return objective_names()[static_cast<std::size_t>(objective)].c_str(); }
const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names = {"time", "memory", "cost", "energy", "pareto"};
  return names;
}
const std::vector<std::string>& searched_options() {
  static const std::vector<std::string> paths = {
      "tp",        "cp",        "pp",      "dp",       "virtual_stages",    "micro_batch",
      "zero",      "recompute", "overlap", "schedule", "sequence_parallel", "placement",
      "zero_group"};
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

std::vector<Family> merged(const std::vector<Tally>& tallies, int most) {
  std::vector<Family> families;
  for (const Tally& tally : tallies) families.insert(families.end(), tally.best.all().begin(), tally.best.all().end());
  std::sort(families.begin(), families.end());
  const auto limit = static_cast<std::size_t>(std::max(1, most));
  if (families.size() < limit) return families;
  families.resize(limit);
  for (Family& family : families)
    std::erase_if(family.variants, [&](const Kept& kept) { return kept.score > families.back().variants.front().score; });
  return families;
}

std::vector<Candidate> front_of(std::vector<Candidate> all) {
  std::vector<Candidate> front;
  for (Candidate& candidate : all)
    if (front.empty() || candidate.estimate.peak < front.back().estimate.peak) front.push_back(std::move(candidate));
  return front;
}

void rerank(std::vector<Candidate>& ranked, int top, Objective objective, const SimulateAll& simulate) {
  const std::size_t count = std::min(ranked.size(), static_cast<std::size_t>(std::max(0, top)));
  const auto better = [](const Candidate& a, const Candidate& b) { return a.score < b.score; };
  for (bool complete = true; complete;) {
    std::stable_sort(ranked.begin(), ranked.end(), better);
    std::vector<const Candidate*> next;
    for (std::size_t i = 0; i < count; ++i)
      if (!ranked[i].simulated) next.push_back(&ranked[i]);
    if (next.empty()) return;
    const std::vector<std::optional<double>> seconds = simulate(next);
    for (std::size_t i = 0, answer = 0; i < count; ++i) {
      Candidate& candidate = ranked[i];
      if (candidate.simulated) continue;
      candidate.simulated = seconds[answer++];
      complete &= candidate.simulated.has_value();
      if (candidate.simulated)
        candidate.score =
            score(objective, candidate.point, *candidate.simulated, static_cast<double>(candidate.estimate.peak.value));
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(), better);
}

}  // namespace foreshard
