#include "strategy/partition/partition.h"

#include <algorithm>
#include <limits>

namespace foreshard {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Sums over layers [from, to) by prefix.
struct Sums {
  std::vector<double> forward = {0}, backward = {0}, weights = {0};
  explicit Sums(const std::vector<ChainLayer>& chain) {
    for (const ChainLayer& layer : chain) {
      forward.push_back(forward.back() + layer.forward);
      backward.push_back(backward.back() + layer.backward);
      weights.push_back(weights.back() + layer.weights);
    }
  }
  double f(int from, int to) const { return forward[at(to)] - forward[at(from)]; }
  double b(int from, int to) const { return backward[at(to)] - backward[at(from)]; }
  double stage(int from, int to, int replicas, double bandwidth) const {
    const double sync = 4.0 * (replicas - 1) / replicas * (weights[at(to)] - weights[at(from)]) / bandwidth;
    return (f(from, to) + b(from, to) + sync) / replicas;
  }
};

// The longest first stage, then the longest second one, ... with no stage over either limit. Empty: more than `stages`.
std::vector<int> greedy(const Sums& sums, int layers, int stages, double forward, double backward) {
  std::vector<int> cuts = {0};
  while (cuts.back() < layers) {
    int end = cuts.back();
    while (end < layers && sums.f(cuts.back(), end + 1) <= forward && sums.b(cuts.back(), end + 1) <= backward) ++end;
    if (end == cuts.back() || static_cast<int>(cuts.size()) > stages) return {};
    cuts.push_back(end);
  }
  return cuts;
}

// Splits stages until there are `stages` of them: no sum grows.
std::vector<ChainStage> filled(std::vector<int> cuts, int stages) {
  while (static_cast<int>(cuts.size()) <= stages)
    for (std::size_t i = 1; i < cuts.size(); ++i)
      if (cuts[i] - cuts[i - 1] > 1) {
        cuts.insert(cuts.begin() + static_cast<std::ptrdiff_t>(i), cuts[i - 1] + 1);
        break;
      }
  std::vector<ChainStage> result;
  for (std::size_t i = 1; i < cuts.size(); ++i) result.push_back({cuts[i - 1], cuts[i], 1});
  return result;
}

// Every sum over consecutive layers, each once.
std::vector<double> distinct(const std::vector<double>& prefix) {
  std::vector<double> sums;
  for (std::size_t from = 0; from < prefix.size(); ++from)
    for (std::size_t to = from + 1; to < prefix.size(); ++to) sums.push_back(prefix[to] - prefix[from]);
  std::sort(sums.begin(), sums.end());
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  return sums;
}

}  // namespace

// Cells by (layers n, devices k): the first n layers on k devices. With more replicas a stage leaves fewer devices to those before
// it, which are then slower: the loop over replicas begins where the stage itself can be fast enough and ends where they cannot.
ChainPartition partition_bottleneck(const std::vector<ChainLayer>& chain, int devices, double bandwidth) {
  const int layers = static_cast<int>(chain.size());
  if (layers == 0 || devices < 1) return {.cost = kNever};
  const Sums sums(chain);
  struct Choice {
    int from = 0, replicas = 0;
  };
  std::vector<std::vector<double>> best(at(layers) + 1, std::vector<double>(at(devices) + 1, kNever));
  std::vector<std::vector<Choice>> choices(at(layers) + 1, std::vector<Choice>(at(devices) + 1));
  std::fill(best[0].begin(), best[0].end(), 0.0);
  for (int n = 1; n <= layers; ++n)
    for (int k = 1; k <= devices; ++k) {
      double least = kNever;
      for (int from = n - 1; from >= 0; --from) {
        const double link = from > 0 ? 2 * chain[at(from - 1)].output / bandwidth : 0;
        if (link >= least) continue;
        const double work = sums.f(from, n) + sums.b(from, n);
        const int enough = least < kNever ? static_cast<int>(work / least) : 1;
        for (int replicas = std::max(1, enough); replicas <= k; ++replicas) {
          const double before = best[at(from)][at(k - replicas)];
          if (before >= least) break;
          const double cost = std::max({before, link, sums.stage(from, n, replicas, bandwidth)});
          if (cost < least) least = cost, choices[at(n)][at(k)] = {from, replicas};
        }
      }
      best[at(n)][at(k)] = least;
    }
  ChainPartition result{.cost = best[at(layers)][at(devices)]};
  for (int k = devices, n = layers; n > 0;) {
    const Choice& choice = choices[at(n)][at(k)];
    result.stages.insert(result.stages.begin(), {choice.from, n, choice.replicas});
    k -= choice.replicas, n = choice.from;
  }
  return result;
}

double bottleneck_cost(const std::vector<ChainLayer>& chain, const std::vector<ChainStage>& stages, double bandwidth) {
  const Sums sums(chain);
  double slowest = 0;
  for (const ChainStage& stage : stages) {
    slowest = std::max(slowest, sums.stage(stage.first, stage.last, stage.replicas, bandwidth));
    if (stage.first > 0) slowest = std::max(slowest, 2 * chain[at(stage.first - 1)].output / bandwidth);
  }
  return slowest;
}

// As the limit on forwards grows the least limit on backwards can only fall, so one walk down the latter is enough.
ChainPartition partition_gpipe(const std::vector<ChainLayer>& chain, int stages, int microbatches) {
  const int layers = static_cast<int>(chain.size());
  if (stages < 1 || layers < stages) return {.cost = kNever};
  const Sums sums(chain);
  const std::vector<double> forwards = distinct(sums.forward), backwards = distinct(sums.backward);
  ChainPartition best{.cost = kNever};
  std::size_t limit = backwards.size() - 1;
  for (const double forward : forwards) {
    std::vector<int> cuts = greedy(sums, layers, stages, forward, backwards[limit]);
    if (cuts.empty()) continue;
    while (limit > 0) {
      std::vector<int> tighter = greedy(sums, layers, stages, forward, backwards[limit - 1]);
      if (tighter.empty()) break;
      cuts = std::move(tighter);
      --limit;
    }
    ChainPartition found{.stages = filled(std::move(cuts), stages)};
    found.cost = gpipe_cost(chain, found.stages, microbatches);
    if (found.cost < best.cost) best = std::move(found);
  }
  return best;
}

double gpipe_cost(const std::vector<ChainLayer>& chain, const std::vector<ChainStage>& stages, int microbatches) {
  const Sums sums(chain);
  double forward = 0, backward = 0;
  for (const ChainStage& stage : stages) {
    forward = std::max(forward, sums.f(stage.first, stage.last));
    backward = std::max(backward, sums.b(stage.first, stage.last));
  }
  return sums.forward.back() + sums.backward.back() + (microbatches - 1) * (forward + backward);
}

}  // namespace foreshard
