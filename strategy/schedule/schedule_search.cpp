#include "strategy/schedule/schedule_search.h"

#include <algorithm>
#include <random>

#include "core/base/at.h"
#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

namespace {

// A greedy order. A free rank runs the action that can begin first; of equal ones an input gradient, else a forward that the limit allows,
// else a weight gradient. With `patient` it rather waits for an input gradient that becomes ready before the other action would end.
class Greedy {
 public:
  Greedy(const ScheduleSearch& search, bool patient)
      : search_(search), patient_(patient), p_(static_cast<int>(search.most_in_flight.size())), ranks_(at(p_)) {
    forward_.assign(at(p_) * at(search.microbatches), -1), gradient_ = forward_;
  }

  ScheduleLists lists() {
    while (next()) {
    }
    ScheduleLists result;
    for (Rank& rank : ranks_) result.push_back(std::move(rank.list));
    return result;
  }

 private:
  struct Rank {
    double free = 0;
    int forwards = 0, inputs = 0, weights = 0;
    std::vector<ScheduleOp> list = {};
  };
  struct Choice {
    double begin = -1;
    Work work = Work::F;
  };

  double& forward(int rank, int i) { return forward_[at(rank) * at(search_.microbatches) + at(i)]; }
  double& gradient(int rank, int i) { return gradient_[at(rank) * at(search_.microbatches) + at(i)]; }
  double hop(int from) const { return search_.times.hops.empty() ? search_.times.latency : search_.times.hops[at(from)]; }

  // When the inputs of an action are ready; -1: not known yet.
  double input_ready(int r, int i) {
    if (i >= ranks_[at(r)].forwards) return -1;
    if (r + 1 == p_) return forward(r, i);
    const double next = gradient(r + 1, i);
    return next < 0 ? -1 : std::max(forward(r, i), next + hop(r));
  }
  double forward_ready(int r, int i) {
    if (r == 0) return 0;
    const double before = forward(r - 1, i);
    return before < 0 ? -1 : before + hop(r - 1);
  }

  Choice choice_of(int r) {
    const Rank& rank = ranks_[at(r)];
    const int m = search_.microbatches;
    Choice best;
    const double input = rank.inputs < m ? input_ready(r, rank.inputs) : -1;
    if (input >= 0) best = {std::max(rank.free, input), Work::I};
    if (rank.forwards < m && rank.forwards - rank.weights < search_.most_in_flight[at(r)])
      if (const double ready = forward_ready(r, rank.forwards); ready >= 0)
        take(best, {std::max(rank.free, ready), Work::F}, search_.times.forward[at(r)]);
    if (rank.weights < rank.inputs) take(best, {rank.free, Work::W}, search_.times.weight_grad[at(r)]);
    return best;
  }
  void take(Choice& best, const Choice& other, double lasts) const {
    const double waits = patient_ && best.work == Work::I ? lasts : 0;
    if (best.begin < 0 || other.begin + waits < best.begin) best = other;
  }

  bool next() {
    int which = -1;
    Choice first;
    for (int r = 0; r < p_; ++r)
      if (const Choice choice = choice_of(r); choice.begin >= 0 && (which < 0 || choice.begin < first.begin))
        which = r, first = choice;
    if (which < 0) return false;
    Rank& rank = ranks_[at(which)];
    int& number = first.work == Work::F ? rank.forwards : first.work == Work::I ? rank.inputs : rank.weights;
    const auto& lasts = first.work == Work::F   ? search_.times.forward
                        : first.work == Work::I ? search_.times.input_grad
                                                : search_.times.weight_grad;
    rank.free = first.begin + lasts[at(which)];
    if (first.work != Work::W) (first.work == Work::F ? forward(which, number) : gradient(which, number)) = rank.free;
    rank.list.push_back({first.work, which, number++});
    return true;
  }

  const ScheduleSearch& search_;
  bool patient_;
  int p_;
  std::vector<Rank> ranks_;
  std::vector<double> forward_, gradient_;  // [rank][micro-batch]: end, -1: not yet
};

bool keeps(const ScheduleLists& lists, const std::vector<int>& most) {
  const std::vector<int> peaks = peak_in_flight(lists);
  for (std::size_t r = 0; r < peaks.size(); ++r)
    if (peaks[r] > most[r]) return false;
  return true;
}

// Replaces each B by I and W, so that the search can move them separately in every list.
ScheduleLists in_halves(ScheduleLists lists) {
  for (auto& list : lists) {
    std::vector<ScheduleOp> halves;
    for (const ScheduleOp& op : list) {
      if (op.work == Work::B) halves.push_back({Work::I, op.stage, op.microbatch});
      halves.push_back({op.work == Work::B ? Work::W : op.work, op.stage, op.microbatch});
    }
    list = std::move(halves);
  }
  return lists;
}

class Climb {
 public:
  Climb(const ScheduleSearch& search, FoundSchedule begin) : search_(search), best_(std::move(begin)) {
    best_.makespan_then = best_.makespan;
  }

  FoundSchedule go() {
    std::mt19937_64 random(1);
    for (int i = 0; i < search_.tries; ++i) {
      auto& list = best_.lists[random() % best_.lists.size()];
      if (list.size() < 2) continue;
      const std::size_t from = random() % list.size(), reach = 1 + random() % std::min<std::size_t>(8, list.size() - 1);
      const std::size_t to = random() % 2 == 0 ? (from >= reach ? from - reach : 0) : std::min(list.size() - 1, from + reach);
      if (from == to) continue;
      move(list, from, to);
      if (!better(list)) move(list, to, from);
    }
    return std::move(best_);
  }

 private:
  static void move(std::vector<ScheduleOp>& list, std::size_t from, std::size_t to) {
    const auto begin = list.begin();
    const auto f = static_cast<std::ptrdiff_t>(from), t = static_cast<std::ptrdiff_t>(to);
    if (f < t)
      std::rotate(begin + f, begin + f + 1, begin + t + 1);
    else
      std::rotate(begin + t, begin + f, begin + f + 1);
  }

  // Whether the changed list keeps the limit and is not slower; if so, keeps its makespan. An order that deadlocks (W before I) is not.
  bool better(const std::vector<ScheduleOp>& list) {
    int now = 0, next[3] = {};  // micro-batches are equal, so only orders with each kind of work in ascending order are tried
    const int most = search_.most_in_flight[at(list.front().stage)];
    for (const ScheduleOp& op : list) {
      if (op.microbatch != next[op.work == Work::F ? 0 : op.work == Work::I ? 1 : 2]++) return false;
      now += op.work == Work::F ? 1 : op.work == Work::W ? -1 : 0;
      if (now > most) return false;
    }
    const auto timing = evaluate(best_.lists, search_.times);
    if (!timing || timing->makespan > best_.makespan) return false;
    best_.makespan = timing->makespan;
    return true;
  }

  const ScheduleSearch& search_;
  FoundSchedule best_;
};

}  // namespace

std::vector<ScheduleEntry> rules_with_one_stage_per_rank(const ScheduleShape& shape) {
  std::vector<ScheduleEntry> rules;
  for (const ScheduleEntry& entry : schedules())
    if (entry.chunks == Chunks::One && entry.routes == 1 && !entry.backwards_per_update && !entry.cells && !entry.refuse(shape))
      rules.push_back(entry);
  return rules;
}

std::variant<FoundSchedule, Infeasible> search_schedule(const ScheduleSearch& search) {
  const int p = static_cast<int>(search.most_in_flight.size()), m = search.microbatches;
  FS_ASSERT(p > 0 && search.times.forward.size() == search.most_in_flight.size());
  if (auto refused = refuse_size({.p = p, .m = m})) return *refused;
  if (const auto none = std::ranges::find_if(search.most_in_flight, [](int most) { return most < 1; });
      none != search.most_in_flight.end())
    return Infeasible{.reason = "pipeline rank " + std::to_string(none - search.most_in_flight.begin()) +
                                " may keep no micro-batch in flight",
                      .would_help = {"--recompute full", "another --layer-split", "more --pp"}};
  FoundSchedule best;
  const auto look_at = [&](ScheduleLists lists, const std::string& name) {
    if (!keeps(lists, search.most_in_flight)) return;
    const auto timing = evaluate(lists, search.times);
    if (!timing || (!best.lists.empty() && timing->makespan >= best.makespan)) return;
    best = {.lists = std::move(lists), .makespan = timing->makespan, .began_with = name};
  };
  for (const ScheduleEntry& entry : rules_with_one_stage_per_rank({.p = p, .m = m}))
    look_at(in_halves(entry.lists({.p = p, .m = m, .times = median_times(search.times)})), entry.name);
  for (const bool patient : {false, true}) look_at(Greedy(search, patient).lists(), "greedy");
  FS_ASSERT(!best.lists.empty());  // the greedy orders keep the limits
  return Climb(search, std::move(best)).go();
}

}  // namespace foreshard
