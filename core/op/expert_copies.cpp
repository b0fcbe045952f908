#include "core/op/expert_copies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "core/base/error.h"

namespace foreshard {

namespace {

// n (1 - C(E - E/n, k) / C(E, k)).
double by_chance(const ExpertSpread& s) {
  double none = 1;  // probability that a part has no expert of a token
  const std::int64_t each = s.experts / s.parts;
  for (std::int64_t i = 0; i < s.chosen; ++i)
    none *= std::max(0.0, static_cast<double>(s.experts - each - i)) / static_cast<double>(s.experts - i);
  return s.parts * (1 - none);
}

// The experts of one token with these scores: those with the best scores in the groups whose `best_of_group` best have the largest sum.
void choose(const ExpertSpread& s, const std::vector<double>& scores, std::vector<std::int64_t>& chosen) {
  const std::int64_t each = s.experts / s.groups;
  std::vector<std::pair<double, std::int64_t>> groups;
  for (std::int64_t g = 0; g < s.groups; ++g) {
    std::vector<double> own(scores.begin() + g * each, scores.begin() + (g + 1) * each);
    const std::int64_t best = std::min(s.best_of_group, each);
    std::partial_sort(own.begin(), own.begin() + best, own.end(), std::greater<>());
    groups.emplace_back(-std::accumulate(own.begin(), own.begin() + best, 0.0), g);
  }
  std::ranges::sort(groups);
  chosen.clear();
  for (std::int64_t g = 0; g < s.chosen_groups; ++g)
    for (std::int64_t i = 0; i < each; ++i) chosen.push_back(groups[static_cast<std::size_t>(g)].second * each + i);
  std::partial_sort(chosen.begin(), chosen.begin() + s.chosen, chosen.end(), [&](std::int64_t a, std::int64_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  chosen.resize(static_cast<std::size_t>(s.chosen));
}

double of_random_tokens(const ExpertSpread& s) {
  constexpr int kTokens = 2000;
  std::mt19937_64 random(20260823);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11U) + 0.5) * 0x1p-53; };
  std::vector<double> scores(static_cast<std::size_t>(s.experts));
  std::vector<std::int64_t> chosen;
  std::int64_t parts = 0;
  for (int token = 0; token < kTokens; ++token) {
    for (double& score : scores)  // the sigmoid of a normal logit
      score = 1 / (1 + std::exp(-std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.14159265358979323846 * uniform())));
    choose(s, scores, chosen);
    std::vector<bool> met(static_cast<std::size_t>(s.parts));
    for (const std::int64_t expert : chosen) met[static_cast<std::size_t>(part_of(s, expert))] = true;
    parts += std::ranges::count(met, true);
  }
  return static_cast<double>(parts) / kTokens;
}

}  // namespace

double parts_of_token(const ExpertSpread& s) {
  FS_ASSERT(s.parts >= 1 && s.ranks % s.parts == 0 && s.experts % s.ranks == 0 && s.chosen <= s.experts);
  if (s.chosen_groups >= s.groups) return by_chance(s);
  static std::mutex mutex;
  static std::map<ExpertSpread, double> known;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace(s, 0);
  if (fresh) at->second = of_random_tokens(s);
  return at->second;
}

}  // namespace foreshard
