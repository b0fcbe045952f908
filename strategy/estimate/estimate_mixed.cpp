#include "strategy/estimate/estimate_mixed.h"

#include <algorithm>
#include <cstdint>

#include "strategy/schedule/schedule.h"

namespace foreshard {

namespace {

// Sums over the ranks before each.
struct Sums {
  std::vector<double> both = {0}, forward = {0}, backward = {0};
  explicit Sums(const UnequalRankTimes& t) {
    for (const RankTimes& rank : t.ranks) {
      both.push_back(both.back() + rank.forward + rank.backward);
      forward.push_back(forward.back() + rank.forward), backward.push_back(backward.back() + rank.backward);
    }
  }
};

// The paths of estimate_pipeline.cpp, with each rank's own times.
double one_f_one_b(const UnequalRankTimes& t) {
  const Sums sums(t);
  const auto p = static_cast<std::int64_t>(t.ranks.size()), m = static_cast<std::int64_t>(t.microbatches);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  double longest = 0, single = 0;
  for (std::int64_t r = p - 1; r >= 0; --r) {
    const RankTimes& rank = t.ranks[at(r)];
    const double f = rank.forward, b = rank.backward, w = f + b;
    single = std::max(single, w);
    const double before = sums.both[at(r)] + 2 * t.hop * static_cast<double>(r);
    const double down = sums.both.back() - sums.both[at(r)] + 2 * t.hop * static_cast<double>(p - 1 - r);
    const std::int64_t depth = p - r, cycles = (m - 1) / depth, rest = (m - 1) % depth;
    const double fast = static_cast<double>(std::max<std::int64_t>(0, m - depth)), slow = static_cast<double>(m - 1);
    double path = std::max({static_cast<double>(m) * w, down + slow * b + fast * f, down + slow * f + fast * b});
    if (m - 1 >= depth) path = std::max(path, 2 * down + static_cast<double>(m - 1 - depth) * single);
    if (cycles > 0) {
      const double part =
          rest == 0 ? 0 : sums.both[at(r + rest)] - sums.both[at(r)] + 2 * t.hop * static_cast<double>(rest - 1);
      path = std::max(path, static_cast<double>(cycles + 1) * down + std::max(part, static_cast<double>(rest) * w));
    }
    longest = std::max(longest, before + path);
  }
  return std::max(longest, t.microbatches * t.hop);
}

double gpipe(const UnequalRankTimes& t) {
  double forward = t.hop, backward = t.hop, sum = 0;
  for (const RankTimes& rank : t.ranks) {
    forward = std::max(forward, rank.forward), backward = std::max(backward, rank.backward);
    sum += rank.forward + rank.backward;
  }
  return sum + 2 * t.hop * static_cast<double>(t.ranks.size() - 1) + (t.microbatches - 1) * (forward + backward);
}

// The busiest rank works without a pause; the pipeline fills and drains in the time of one chunk of every other rank.
double interleaved(const UnequalRankTimes& t) {
  double chunks = 0, longest = 0, chunk = 0;
  for (const RankTimes& rank : t.ranks) chunks += rank.chunk, chunk = std::max(chunk, rank.chunk);
  for (const RankTimes& rank : t.ranks) longest = std::max(longest, t.microbatches * rank.all() + chunks - rank.chunk);
  const double hops = 2 * t.hop * (t.chunks * static_cast<double>(t.ranks.size()) - 1);
  return std::max(longest + hops, t.microbatches * t.chunks * t.hop + 2 * chunk);
}

double with_idle(const ScheduleEntry& schedule, const UnequalRankTimes& t) {
  double idle = 0, most = 0, busiest = 0;
  for (const RankTimes& rank : t.ranks) {
    const double f = rank.forward + rank.more_forward, w = rank.weights, i = rank.backward + rank.more_backward - w;
    const double own = schedule.idle({.forward = f,
                                      .input_grad = i,
                                      .weight_grad = w,
                                      .hop = t.hop,
                                      .ranks = static_cast<double>(t.ranks.size()),
                                      .chunks = static_cast<double>(t.chunks),
                                      .microbatches = static_cast<double>(t.microbatches)});
    idle += own, most = std::max(most, own), busiest = std::max(busiest, rank.all());
  }
  if (schedule.idle_hops) idle += schedule.idle_hops(static_cast<int>(t.ranks.size())) * t.hop;
  return t.microbatches * busiest + idle - most;
}

}  // namespace

double unequal_rank_time(const ScheduleEntry& schedule, const UnequalRankTimes& times) {
  if (schedule.idle) return with_idle(schedule, times);
  if (times.chunks > 1) return interleaved(times);
  return schedule.forwards_first ? gpipe(times) : one_f_one_b(times);
}

double mixed_bound(const ScheduleEntry& schedule, const UnequalRankTimes& times) {
  double least = 0, way = 0, work = 0;
  for (const RankTimes& rank : times.ranks) {
    least = std::max(least, way + times.microbatches * rank.all());
    way += rank.forward + (schedule.splits || schedule.chunks == Chunks::Any ? 0 : rank.backward);
    work += rank.all();
  }
  return schedule.routes > 1 ? times.microbatches * work / static_cast<double>(times.ranks.size()) : least;
}

}  // namespace foreshard
