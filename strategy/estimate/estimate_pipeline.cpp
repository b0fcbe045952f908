#include "strategy/estimate/estimate_pipeline.h"

#include <algorithm>

#include "strategy/schedule/schedule.h"

namespace foreshard {

namespace {

// Sums over the stages of a chain first, middle ... middle, last.
struct Chain {
  const PipelineTimes& t;
  double both(int stage) const { return forward(stage) + backward(stage); }
  int kind(int stage) const { return t.ranks == 1 ? 3 : stage == 0 ? 0 : stage + 1 == t.ranks ? 2 : 1; }
  bool has_fewer(int stage) const { return stage > 0 && stage <= t.fewer; }
  double forward(int stage) const {
    return t.forward[static_cast<std::size_t>(kind(stage))] - (has_fewer(stage) ? t.forward_less : 0);
  }
  double backward(int stage) const {
    return t.backward[static_cast<std::size_t>(kind(stage))] - (has_fewer(stage) ? t.backward_less : 0);
  }
  double both_between() const { return t.forward[1] + t.backward[1]; }
  double forwards(int to) const {  // of the stages before
    double all = 0;
    for (int stage = 0; stage < to; ++stage) all += forward(stage);
    return all;
  }
  // F and B of the stages [from, to), without transfers.
  double sum(int from, int to) const {
    double all = 0;
    if (from >= to) return 0;
    int middles = to - from;
    if (from == 0) all += both(0), --middles;
    if (to == t.ranks && t.ranks > 1) all += both(t.ranks - 1), --middles;
    const int few = std::max(0, std::min(to, t.fewer + 1) - std::max(from, 1));
    return all + (middles > 0 ? middles * both_between() - few * (t.forward_less + t.backward_less) : 0);
  }
};

// The longest path of 1F1B. Stage r runs B(i) between F(i + p-1-r) and F(i + p-r). So there are two ways to get from F(j) of stage r to a
// later forward of it: down to the last stage and back up, which takes D seconds and reaches F(j + p-r); or F and B of stage r only, which
// takes w seconds and reaches the next micro-batch. A path goes through the stages before r once, and then combines both ways.
double one_f_one_b(const PipelineTimes& t) {
  const Chain chain{t};
  const int p = t.ranks;
  const auto m = static_cast<std::int64_t>(t.microbatches);
  double longest = 0;
  // Fewer micro-batches than ranks: the last m - 1 ranks turn as a whole.
  const int turning = m - 1 < p ? p - static_cast<int>(m - 1) : 0;
  for (const int r : {0, 1, t.fewer + 1, turning, p - 2, p - 1}) {
    if (r < 0 || r >= p) continue;
    const double before = chain.sum(0, r) + 2 * t.hop * r;
    const double down = chain.sum(r, p) + 2 * t.hop * (p - 1 - r);
    const double f = chain.forward(r), b = chain.backward(r), w = f + b;
    const std::int64_t depth = p - r, cycles = (m - 1) / depth, rest = (m - 1) % depth;
    const double fast = static_cast<double>(std::max<std::int64_t>(0, m - depth));
    const double slow = static_cast<double>(m - 1);
    double path = static_cast<double>(m) * w;
    path = std::max({path, down + slow * b + fast * f, down + slow * f + fast * b});
    const double single = std::max(w, chain.both(p - 1));
    if (m - 1 >= depth) path = std::max(path, 2 * down + static_cast<double>(m - 1 - depth) * single);
    if (cycles > 0) {
      const int end = r + static_cast<int>(rest);
      const double remainder = rest == 0 ? 0 : chain.sum(r, end) + 2 * t.hop * static_cast<double>(rest - 1);
      path = std::max(path, static_cast<double>(cycles + 1) * down + std::max(remainder, static_cast<double>(rest) * w));
    }
    longest = std::max(longest, before + path);
  }
  return std::max(longest, t.microbatches * t.hop);
}

double gpipe(const PipelineTimes& t) {
  const Chain chain{t};
  const int p = t.ranks;
  double forward = 0, backward = 0;
  for (const int stage : {0, std::min(t.fewer + 1, p - 1), p - 1})
    forward = std::max(forward, chain.forward(stage)), backward = std::max(backward, chain.backward(stage));
  forward = std::max(forward, t.hop), backward = std::max(backward, t.hop);
  return chain.sum(0, p) + 2 * t.hop * (p - 1) + (t.microbatches - 1) * (forward + backward);
}

double busiest(const PipelineTimes& t) {  // seconds of one micro-batch on the busiest rank
  const Chain chain{t};
  double most = 0;
  for (const int stage : {0, std::min(t.fewer + 1, t.ranks - 1), t.ranks - 1})
    most = std::max(most, chain.both(stage) - t.hidden[static_cast<std::size_t>(chain.kind(stage))]);
  return most + (t.chunks - 1) * (t.forward[1] + t.backward[1] - t.hidden[1]);
}

// Every rank runs v chunks per micro-batch; the pipeline fills and drains in steps of one chunk, and 2 (v p - 1) transfers hold it up
// (docs/schedules.md, "Closed forms").
double interleaved(const PipelineTimes& t) {
  const double chunk = t.forward[1] + t.backward[1];
  const double turns = t.microbatches * t.chunks * t.hop;  // what a rank sends one way
  const double fill = (t.ranks - 1) * chunk;
  return std::max(t.microbatches * busiest(t) + fill + 2 * t.hop * (t.chunks * t.ranks - 1), turns + 2 * chunk);
}

// Idle time of equal stages (docs/schedules.md, "Zero bubble") over the work of the busiest rank. Times of a rank, not a chunk. A rank runs
// its first forwards and its last backwards outside cells, the last rank the fewest.
double with_idle(const ScheduleEntry& schedule, const PipelineTimes& t) {
  const double chunks = t.chunks, f = t.forward[1] * chunks, w = t.weights[1] * chunks, i = t.backward[1] * chunks - w;
  const double own = schedule.idle({.forward = f,
                                    .input_grad = i,
                                    .weight_grad = w,
                                    .hop = t.hop,
                                    .ranks = static_cast<double>(t.ranks),
                                    .chunks = chunks,
                                    .microbatches = static_cast<double>(t.microbatches)});
  const int hops = schedule.idle_hops ? schedule.idle_hops(t.ranks) : 0;
  const double apart = std::min((chunks - 1) * t.ranks + 1, t.microbatches * chunks) * t.hidden[t.ranks == 1 ? 3 : 1];
  return t.microbatches * busiest(t) + apart + ((t.ranks - 1) * own + hops * t.hop);
}

}  // namespace

// A transfer that does not overlap with computes delays the sender as long as the receiver.
void block_while_sending(PipelineTimes& times) {
  for (const int kind : {0, 1, 2}) {
    if (kind != 2) times.forward[static_cast<std::size_t>(kind)] += times.hop;
    if (kind != 0) times.backward[static_cast<std::size_t>(kind)] += times.hop;
  }
  times.hop = 0;
}

double pipeline_time(const ScheduleEntry& schedule, const PipelineTimes& times) {
  if (schedule.idle) return with_idle(schedule, times);
  if (times.chunks > 1) return interleaved(times);
  return schedule.forwards_first ? gpipe(times) : one_f_one_b(times);
}

// A rank does all its work after the first micro-batch has passed the stages before it, and then its last gradient passes back through
// these, but for runs that overlap. If a schedule splits backwards, or may (one from a file), the way back is not counted. With two routes the busiest rank does at
// least the mean of all work.
double pipeline_bound(const ScheduleEntry& schedule, const PipelineTimes& t) {
  const Chain chain{t};
  const double more = (t.chunks - 1) * (t.forward[1] + t.backward[1]);
  double least = 0;
  if (schedule.routes > 1) return t.microbatches * chain.sum(0, t.ranks) / t.ranks;
  if (schedule.backwards_per_update) return t.microbatches * busiest(t);  // the next run begins while this one drains
  for (const int stage : {0, std::min(t.fewer + 1, t.ranks - 1), t.ranks - 1}) {
    const double way = schedule.splits || schedule.chunks == Chunks::Any ? chain.forwards(stage) : chain.sum(0, stage);
    least = std::max(least, way + t.microbatches * (chain.both(stage) + more));
  }
  return least;
}

}  // namespace foreshard
