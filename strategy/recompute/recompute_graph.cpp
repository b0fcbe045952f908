#include "strategy/recompute/recompute_graph.h"

#include <algorithm>

#include "core/base/at.h"

namespace foreshard {

namespace {

using Row = std::vector<bool>;

// [node]: whether stage t computes it: its own node, values that are kept for the next stage, and whatever these read that is not kept.
Row computes(const std::vector<RecomputeNode>& graph, int t, const Row& kept, const Row& kept_next) {
  Row need(graph.size(), false);
  need[at(t)] = true;
  for (int i = 0; i <= t; ++i)
    if (kept_next[at(i)] && !kept[at(i)]) need[at(i)] = true;
  for (int i = t; i >= 0; --i)
    if (need[at(i)])
      for (const int input : graph[at(i)].inputs)
        if (!kept[at(input)]) need[at(input)] = true;
  return need;
}

// The most bytes alive in stage t. A value that is not kept for the next stage is freed after its last reader in this one.
int stage_peak(const std::vector<RecomputeNode>& graph, int t, const Row& kept, const Row& kept_next, const Row& run) {
  Row alive = kept;
  int bytes = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) bytes += alive[i] ? graph[i].bytes : 0;
  std::vector<int> readers(graph.size(), 0);
  for (int k = 0; k <= t; ++k)
    if (run[at(k)])
      for (const int input : graph[at(k)].inputs) ++readers[at(input)];
  const auto free_if_done = [&](int i) {
    if (!alive[at(i)] || readers[at(i)] > 0 || kept_next[at(i)]) return;
    alive[at(i)] = false;
    bytes -= graph[at(i)].bytes;
  };
  for (int i = 0; i <= t; ++i) free_if_done(i);  // values that were kept but are not read any more
  int peak = bytes;
  for (int k = 0; k <= t; ++k) {
    if (!run[at(k)]) continue;
    if (!alive[at(k)]) alive[at(k)] = true, bytes += graph[at(k)].bytes;
    peak = std::max(peak, bytes);
    for (const int input : graph[at(k)].inputs) --readers[at(input)], free_if_done(input);
    free_if_done(k);
  }
  return peak;
}

double stage_seconds(const std::vector<RecomputeNode>& graph, const Row& run) {
  double seconds = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) seconds += run[i] ? graph[i].seconds : 0;
  return seconds;
}

// Stages from .. to - 1, in which a value is kept without being read.
struct Stretch {
  int node = 0, from = 0, to = 0;
};

std::vector<Stretch> stretches(const std::vector<RecomputeNode>& graph, const GraphSchedule& schedule) {
  std::vector<Stretch> found;
  const int stages = static_cast<int>(graph.size());
  const auto reads = [&](int t, int node) {
    for (int k = 0; k <= t; ++k)
      if (schedule.compute[at(t)][at(k)])
        for (const int input : graph[at(k)].inputs)
          if (input == node) return true;
    return false;
  };
  for (int node = 0; node < stages; ++node)
    for (int t = node + 1, from = t; t < stages; ++t) {
      if (!schedule.keep[at(t)][at(node)]) {
        from = t + 1;
        continue;
      }
      const bool used = reads(t, node), ends = t + 1 == stages || !schedule.keep[at(t) + 1][at(node)];
      if (used || ends) found.push_back({node, from, t + 1}), from = t + 1;
    }
  return found;
}

}  // namespace

GraphSchedule schedule_of(const std::vector<RecomputeNode>& graph, const std::vector<std::vector<bool>>& keep) {
  GraphSchedule schedule{.keep = keep};
  const Row nothing(graph.size(), false);
  for (int t = 0; t < static_cast<int>(graph.size()); ++t) {
    const Row& next = at(t) + 1 < keep.size() ? keep[at(t) + 1] : nothing;
    schedule.compute.push_back(computes(graph, t, keep[at(t)], next));
    schedule.seconds += stage_seconds(graph, schedule.compute.back());
    schedule.peak = std::max(schedule.peak, stage_peak(graph, t, keep[at(t)], next, schedule.compute.back()));
  }
  return schedule;
}

// The schedule in which every value is kept from its stage to its last reader.
static GraphSchedule keep_everything(const std::vector<RecomputeNode>& graph) {
  std::vector<Row> keep(graph.size(), Row(graph.size(), false));
  for (std::size_t reader = 0; reader < graph.size(); ++reader)
    for (const int input : graph[reader].inputs)
      for (std::size_t t = at(input) + 1; t <= reader; ++t) keep[t][at(input)] = true;
  return schedule_of(graph, keep);
}

static bool repeats_once(const std::vector<RecomputeNode>& graph, const GraphSchedule& schedule) {
  for (std::size_t t = 0; t < graph.size(); ++t)
    for (std::size_t i = 0; i < t; ++i)
      if (graph[i].once && schedule.compute[t][i]) return true;
  return false;
}

// The schedule after the best drop of one stretch; empty if every drop would raise the peak.
static GraphSchedule one_stretch_less(const std::vector<RecomputeNode>& graph, const GraphSchedule& schedule) {
  GraphSchedule best;
  double best_ratio = -1;
  for (const Stretch& drop : stretches(graph, schedule)) {
    std::vector<Row> fewer = schedule.keep;
    for (int t = drop.from; t < drop.to; ++t) fewer[at(t)][at(drop.node)] = false;
    GraphSchedule changed = schedule_of(graph, fewer);
    if (changed.peak > schedule.peak || repeats_once(graph, changed)) continue;
    const double freed = static_cast<double>(schedule.peak - changed.peak) +
                         1e-6 * graph[at(drop.node)].bytes * static_cast<double>(drop.to - drop.from);
    const double ratio = freed / (changed.seconds - schedule.seconds + 1e-12);
    if (ratio > best_ratio) best_ratio = ratio, best = std::move(changed);
  }
  return best;
}

std::vector<GraphSchedule> recompute_greedy_path(const std::vector<RecomputeNode>& graph, int budget) {
  std::vector<GraphSchedule> path = {keep_everything(graph)};
  while (path.back().peak > budget) {
    GraphSchedule next = one_stretch_less(graph, path.back());
    if (next.keep.empty()) break;
    path.push_back(std::move(next));
  }
  return path;
}

GraphSchedule keep_longer(const std::vector<RecomputeNode>& graph, GraphSchedule schedule, int budget) {
  const int stages = static_cast<int>(graph.size());
  for (int node = 0; node < stages; ++node)
    for (int from = node, to = node + 1; to < stages; ++to) {
      if (!schedule.compute[at(to)][at(node)]) continue;
      std::vector<Row> more = schedule.keep;
      for (int t = from + 1; t <= to; ++t) more[at(t)][at(node)] = true;
      if (GraphSchedule kept = schedule_of(graph, more); kept.peak <= budget && kept.seconds < schedule.seconds)
        schedule = std::move(kept);
      from = to;
    }
  return schedule;
}

GraphSchedule recompute_greedy(const std::vector<RecomputeNode>& graph, int budget) {
  std::vector<GraphSchedule> path = recompute_greedy_path(graph, budget);
  return path.back().peak <= budget ? keep_longer(graph, std::move(path.back()), budget) : GraphSchedule{};
}

}  // namespace foreshard
