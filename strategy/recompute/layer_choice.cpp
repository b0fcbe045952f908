#include "strategy/recompute/layer_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>

#include "core/base/error.h"
#include "core/base/never.h"

namespace foreshard {

namespace {

double switching(const LayerChoiceJob& job, std::size_t from, std::size_t to) {
  return job.switching.empty() ? 0 : job.switching[from][to];
}

void check(const LayerChoiceJob& job) {
  for (const auto& options : job.layers) FS_ASSERT(!options.empty() && options.size() == job.layers.front().size());
  if (!job.switching.empty() && !job.layers.empty()) FS_ASSERT(job.switching.size() == job.layers.front().size());
}

// [i]: the least memory of layer i and all after it.
std::vector<double> least_of_rest(const LayerChoiceJob& job) {
  std::vector<double> least(job.layers.size() + 1, 0.0);
  for (std::size_t i = job.layers.size(); i-- > 0;) {
    double one = kNever;
    for (const LayerOption& option : job.layers[i])
      if (option.seconds < kNever) one = std::min(one, option.bytes);
    least[i] = one + least[i + 1];
  }
  return least;
}

struct Partial {
  double seconds = 0, bytes = 0;
  std::int32_t before = -1;  // index in the list of the layer before, which has the partial assignments of all strategies
  std::int32_t strategy = 0;
};

// Keeps the Pareto front, sorted by time: each one takes less memory than all before it.
void keep_front(std::vector<Partial>& all) {
  std::sort(all.begin(), all.end(), [](const Partial& a, const Partial& b) {
    return std::tie(a.seconds, a.bytes, a.before) < std::tie(b.seconds, b.bytes, b.before);
  });
  double smallest = kNever;
  std::erase_if(all, [&](const Partial& each) {
    if (each.bytes >= smallest) return true;
    smallest = each.bytes;
    return false;
  });
}

}  // namespace

LayerChoice layer_choice(const LayerChoiceJob& job, std::vector<int> strategies) {
  LayerChoice choice{.strategies = std::move(strategies)};
  for (std::size_t i = 0; i < choice.strategies.size(); ++i) {
    const auto s = static_cast<std::size_t>(choice.strategies[i]);
    choice.seconds += job.layers[i][s].seconds, choice.bytes += job.layers[i][s].bytes;
    if (i > 0) choice.seconds += switching(job, static_cast<std::size_t>(choice.strategies[i - 1]), s);
  }
  return choice;
}

std::vector<LayerChoice> layer_choice_front(const LayerChoiceJob& job) {
  check(job);
  if (job.layers.empty()) return {};
  const std::vector<double> least = least_of_rest(job);
  std::vector<std::vector<Partial>> levels;  // [layer]
  for (std::size_t i = 0; i < job.layers.size(); ++i) {
    std::vector<Partial> level;
    for (std::size_t s = 0; s < job.layers[i].size(); ++s) {
      const LayerOption& option = job.layers[i][s];
      std::vector<Partial> same;  // partial assignments that end with strategy s
      const auto add = [&](double seconds, double bytes, std::int32_t before) {
        if (seconds < kNever && bytes + least[i + 1] <= job.memory)
          same.push_back({seconds, bytes, before, static_cast<std::int32_t>(s)});
      };
      if (i == 0) add(option.seconds, option.bytes, -1);
      for (std::size_t b = 0; i > 0 && b < levels.back().size(); ++b) {
        const Partial& before = levels.back()[b];
        const double change = switching(job, static_cast<std::size_t>(before.strategy), s);
        add(before.seconds + change + option.seconds, before.bytes + option.bytes, static_cast<std::int32_t>(b));
      }
      keep_front(same);
      level.insert(level.end(), same.begin(), same.end());
    }
    if (job.switching.empty()) keep_front(level);  // without switching costs the last strategy does not matter for the rest
    levels.push_back(std::move(level));
  }
  std::vector<Partial> last = levels.back();
  keep_front(last);
  std::vector<LayerChoice> front;
  for (const Partial& end : last) {
    std::vector<int> strategies(job.layers.size());
    const Partial* at = &end;
    for (std::size_t i = job.layers.size(); i-- > 0;) {
      strategies[i] = at->strategy;
      if (i > 0) at = &levels[i - 1][static_cast<std::size_t>(at->before)];
    }
    front.push_back(layer_choice(job, std::move(strategies)));
  }
  return front;
}

LayerChoice layer_choice_exact(const LayerChoiceJob& job) {
  const std::vector<LayerChoice> front = layer_choice_front(job);
  return front.empty() ? LayerChoice{.seconds = kNever} : front.front();
}

// best[s][u]: seconds of the layers so far with the last one at strategy s and u cells in use.
LayerChoice layer_choice_on_grid(const LayerChoiceJob& job, int cells) {
  check(job);
  if (job.layers.empty() || cells < 1 || job.memory <= 0) return {.seconds = kNever};
  const std::size_t strategies = job.layers.front().size(), width = static_cast<std::size_t>(cells) + 1;
  const double cell = job.memory / cells;
  const auto in_cells = [&](double bytes) { return std::ceil(bytes / cell); };
  std::vector<std::vector<double>> best(strategies, std::vector<double>(width, kNever));
  std::vector<std::vector<std::vector<std::int16_t>>> from(
      job.layers.size(), std::vector<std::vector<std::int16_t>>(strategies, std::vector<std::int16_t>(width, -1)));
  for (std::size_t i = 0; i < job.layers.size(); ++i) {
    std::vector<std::vector<double>> next(strategies, std::vector<double>(width, kNever));
    std::vector<std::int16_t> cheapest;  // without switching costs, [cells in use]: the best strategy of the layer before
    for (std::size_t used = 0; i > 0 && job.switching.empty() && used < width; ++used) {
      std::size_t least = 0;
      for (std::size_t before = 1; before < strategies; ++before)
        if (best[before][used] < best[least][used]) least = before;
      cheapest.push_back(static_cast<std::int16_t>(least));
    }
    for (std::size_t s = 0; s < strategies; ++s) {
      const LayerOption& option = job.layers[i][s];
      const double needed = in_cells(option.bytes);
      if (option.seconds == kNever || needed > cells) continue;
      const auto taken = static_cast<std::size_t>(std::max(0.0, needed));
      if (i == 0) next[s][taken] = option.seconds;
      for (std::size_t used = 0; used < cheapest.size() && used + taken < width; ++used)
        next[s][used + taken] = best[static_cast<std::size_t>(cheapest[used])][used] + option.seconds,
                       from[i][s][used + taken] = cheapest[used];
      for (std::size_t before = 0; i > 0 && !job.switching.empty() && before < strategies; ++before) {
        const double more = option.seconds + switching(job, before, s);
        for (std::size_t used = 0; used + taken < width; ++used) {
          const double seconds = best[before][used] + more;
          if (seconds < next[s][used + taken])
            next[s][used + taken] = seconds, from[i][s][used + taken] = static_cast<std::int16_t>(before);
        }
      }
    }
    best = std::move(next);
  }
  std::size_t last = 0, used = 0;
  for (std::size_t s = 0; s < strategies; ++s)
    for (std::size_t u = 0; u < width; ++u)
      if (best[s][u] < best[last][used]) last = s, used = u;
  if (best[last][used] == kNever) return {.seconds = kNever};
  std::vector<int> chosen(job.layers.size());
  for (std::size_t i = job.layers.size(); i-- > 0;) {
    chosen[i] = static_cast<int>(last);
    const std::int16_t before = from[i][last][used];
    used -= static_cast<std::size_t>(std::max(0.0, in_cells(job.layers[i][last].bytes)));
    last = static_cast<std::size_t>(std::max<std::int16_t>(0, before));
  }
  return layer_choice(job, std::move(chosen));
}

}  // namespace foreshard
