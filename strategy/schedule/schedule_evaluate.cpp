// Longest path over the lists. Every rank has a position in its list and advances while its next action is ready. An action that finishes
// wakes the one rank that may wait for it, so each action is visited a constant number of times.
#include <algorithm>
#include <utility>

#include "core/base/at.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

ActionTimes median_times(const ScheduleTimes<double>& times) {
  const auto median = [](std::vector<double> of, double none) {  // the lower one of two
    if (of.empty()) return none;
    const auto middle = of.begin() + static_cast<std::ptrdiff_t>((of.size() - 1) / 2);
    std::ranges::nth_element(of, middle);
    return *middle;
  };
  std::vector<double> hops = times.hops;
  if (hops.size() == times.forward.size() && hops.size() > 1) hops.pop_back();  // nothing follows the last stage
  return {.forward = median(times.forward, 0),
          .input_grad = median(times.input_grad, 0),
          .weight_grad = median(times.weight_grad, 0),
          .transfer = median(hops, times.latency)};
}

namespace {

template <class Time>
class Walk {
 public:
  Walk(const ScheduleLists& lists, const ScheduleTimes<Time>& times) : lists_(lists), times_(times) {
    std::int32_t stages = 0;
    for (const auto& list : lists)
      for (const ScheduleOp& op : list) {
        FS_ASSERT(!op.with_next || &op != &list.back());
        FS_ASSERT(op.stage >= 0 && op.microbatch >= 0);
        stages = std::max(stages, op.stage + 1);
        microbatches_ = std::max(microbatches_, op.microbatch + 1);
      }
    FS_ASSERT(times.forward.size() >= at(stages) && times.input_grad.size() >= at(stages) &&
              times.weight_grad.size() >= at(stages));
    per_route_ = stages / times.routes;
    rank_of_.assign(at(stages), -1);
    for (std::size_t rank = 0; rank < lists.size(); ++rank)
      for (const ScheduleOp& op : lists[rank]) rank_of_[at(op.stage)] = static_cast<std::int32_t>(rank);
    forward_.assign(at(stages) * at(microbatches_), kNever);
    gradient_ = sent_forward_ = sent_gradient_ = forward_;
    ways_.resize(lists.size());
  }

  std::optional<ScheduleTiming<Time>> run(std::vector<std::string>* blocked) {
    start();
    while (!awake_.empty()) {
      const std::int32_t rank = awake_.back();
      awake_.pop_back();
      is_awake_[at(rank)] = false;
      advance(rank);
    }
    bool stuck = false;
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) stuck |= next_[rank] < lists_[rank].size();
    if (stuck) {
      if (blocked) *blocked = where_stuck();
      return {};
    }
    finish();
    return std::move(result_);
  }

 private:
  static constexpr Time kNever = Time{-1};

  void start() {
    const std::size_t ranks = lists_.size();
    next_.assign(ranks, 0);
    is_awake_.assign(ranks, true);
    result_.begin.resize(ranks), result_.end.resize(ranks);
    for (std::size_t rank = ranks; rank-- > 0;) {
      result_.begin[rank].reserve(lists_[rank].size()), result_.end[rank].reserve(lists_[rank].size());
      awake_.push_back(static_cast<std::int32_t>(rank));
    }
  }

  std::size_t cell(std::int32_t stage, std::int32_t microbatch) const { return at(stage) * at(microbatches_) + at(microbatch); }
  bool is_first(std::int32_t stage) const { return stage % per_route_ == 0; }
  bool is_last(std::int32_t stage) const { return (stage + 1) % per_route_ == 0; }
  // Whether there is no stage on the side of `neighbour`: `stage` is the first or the last one.
  bool is_end(std::int32_t stage, std::int32_t neighbour) const { return neighbour > stage ? is_last(stage) : is_first(stage); }
  // When the result of an action of stage `from` on `rank`, which ends at `finished`, arrives at the neighbouring stage `to`. Must be
  // called in the order of the rank's list.
  Time arrival(Time finished, std::int32_t rank, std::int32_t from, std::int32_t to) {
    if (is_end(from, to) || rank_of_[at(to)] == rank) return finished;
    const Time hop = times_.hops.empty() ? times_.latency : times_.hops[at(std::min(from, to))];
    if (!times_.in_turn) return finished + hop;
    auto& ways = ways_[at(rank)];
    const auto same = [&](const auto& each) { return each.first == rank_of_[at(to)]; };
    auto way = std::find_if(ways.begin(), ways.end(), same);
    if (way == ways.end()) way = ways.insert(ways.end(), {rank_of_[at(to)], Time{}});
    way->second = std::max(finished, way->second) + hop;
    return way->second;
  }
  // When all inputs of the action have arrived; kNever if that is not known yet.
  Time ready(const ScheduleOp& op) const {
    if (op.work == Work::Update) return Time{};
    if (op.work == Work::F) return is_first(op.stage) ? Time{} : sent_forward_[cell(op.stage - 1, op.microbatch)];
    if (op.work == Work::W) return gradient_[cell(op.stage, op.microbatch)];
    const Time own = forward_[cell(op.stage, op.microbatch)];
    if (own == kNever || is_last(op.stage)) return own;
    const Time next = sent_gradient_[cell(op.stage + 1, op.microbatch)];
    return next == kNever ? kNever : std::max(own, next);
  }
  Time duration(std::size_t rank, std::size_t position) const {
    if (!times_.exact.empty() && times_.exact[rank][position] >= Time{}) return times_.exact[rank][position];
    const ScheduleOp& op = lists_[rank][position];
    switch (op.work) {
      case Work::F: return times_.forward[at(op.stage)];
      case Work::B: return times_.input_grad[at(op.stage)] + times_.weight_grad[at(op.stage)];
      case Work::I: return times_.input_grad[at(op.stage)];
      case Work::W: return times_.weight_grad[at(op.stage)];
      case Work::Update: break;
    }
    return Time{};
  }
  void wake(std::int32_t from, std::int32_t stage) {
    if (is_end(from, stage) || rank_of_[at(stage)] < 0) return;
    const std::int32_t rank = rank_of_[at(stage)];
    if (is_awake_[at(rank)]) return;
    is_awake_[at(rank)] = true;
    awake_.push_back(rank);
  }

  // The actions of a cell begin when the inputs of all have arrived, and end together.
  static std::size_t end_of_cell(const std::vector<ScheduleOp>& list, std::size_t position) {
    while (list[position].with_next) ++position;
    return position + 1;
  }
  // Whether action `k` is a weight gradient whose input gradient is in the same cell.
  static bool made_in_cell(const std::vector<ScheduleOp>& list, std::size_t begin, std::size_t k) {
    const ScheduleOp& w = list[k];
    return w.work == Work::W && std::find(&list[begin], &list[k], ScheduleOp{Work::I, w.stage, w.microbatch, true}) != &list[k];
  }

  void advance(std::int32_t rank) {
    const auto& list = lists_[at(rank)];
    auto& begin = result_.begin[at(rank)];
    auto& end = result_.end[at(rank)];
    std::size_t position = next_[at(rank)];
    Time free = position == 0 ? Time{} : end.back();
    while (position < list.size()) {
      const std::size_t cell_end = end_of_cell(list, position);
      Time started = free, lasts{};
      for (std::size_t k = position; k < cell_end; ++k) {
        if (k > position && made_in_cell(list, position, k)) continue;
        const Time inputs = ready(list[k]);
        if (inputs == kNever) {
          started = kNever;
          break;
        }
        started = std::max(started, inputs);
      }
      if (started == kNever) break;
      for (std::size_t k = position + 1; k < cell_end; ++k) lasts += duration(at(rank), k);
      if (cell_end > position + 1) lasts = std::max(Time{}, lasts - times_.saved);
      free = started + duration(at(rank), position) + lasts;
      for (; position < cell_end; ++position) {
        begin.push_back(started), end.push_back(free);
        done(list[position], rank, free);
      }
    }
    next_[at(rank)] = position;
  }

  void done(const ScheduleOp& op, std::int32_t rank, Time when) {
    if (op.work == Work::W || op.work == Work::Update) return;
    const bool forward = op.work == Work::F;
    const std::int32_t to = op.stage + (forward ? 1 : -1);
    (forward ? forward_ : gradient_)[cell(op.stage, op.microbatch)] = when;
    (forward ? sent_forward_ : sent_gradient_)[cell(op.stage, op.microbatch)] = arrival(when, rank, op.stage, to);
    wake(op.stage, to);
  }

  void finish() {
    for (const auto& ends : result_.end)
      if (!ends.empty()) result_.makespan = std::max(result_.makespan, ends.back());
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      Time busy{};
      for (std::size_t position = 0; position < lists_[rank].size(); ++position) {
        if (position > 0 && lists_[rank][position - 1].with_next) continue;
        busy += result_.end[rank][position] - result_.begin[rank][position];
      }
      result_.idle.push_back(result_.makespan - busy);
    }
  }

  std::vector<std::string> where_stuck() const {
    std::vector<std::string> stuck;
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      if (next_[rank] == lists_[rank].size()) continue;
      const ScheduleOp& op = lists_[rank][next_[rank]];
      ScheduleOp missing = {Work::F, op.stage, op.microbatch};
      if (op.work == Work::F)
        missing.stage = op.stage - 1;
      else if (op.work == Work::W)
        missing.work = Work::I;
      else if (forward_[cell(op.stage, op.microbatch)] != kNever)
        missing = {Work::B, op.stage + 1, op.microbatch};
      stuck.push_back("rank " + std::to_string(rank) + " is at " + to_text(op) + " and waits for " + to_text(missing));
    }
    return stuck;
  }

  const ScheduleLists& lists_;
  const ScheduleTimes<Time>& times_;
  std::int32_t microbatches_ = 0, per_route_ = 1;
  std::vector<std::int32_t> rank_of_ = {};                             // [stage]
  std::vector<Time> forward_ = {}, gradient_ = {};                     // [stage][micro-batch]: end of F; end of B or I
  std::vector<Time> sent_forward_ = {}, sent_gradient_ = {};           // when they arrive at the stage that reads them
  std::vector<std::vector<std::pair<std::int32_t, Time>>> ways_ = {};  // [rank]{receiving rank, end of the last transfer to it}
  std::vector<std::size_t> next_ = {};                                 // [rank]: position of its next action
  std::vector<std::int32_t> awake_ = {};                               // ranks whose next action may be ready
  std::vector<char> is_awake_ = {};
  ScheduleTiming<Time> result_ = {};
};

}  // namespace

template <class Time>
std::optional<ScheduleTiming<Time>> evaluate(const ScheduleLists& lists, const ScheduleTimes<Time>& times,
                                             std::vector<std::string>* blocked) {
  return Walk<Time>(lists, times).run(blocked);
}
template std::optional<ScheduleTiming<double>> evaluate(const ScheduleLists&, const ScheduleTimes<double>&,
                                                        std::vector<std::string>*);
template std::optional<ScheduleTiming<std::int64_t>> evaluate(const ScheduleLists&, const ScheduleTimes<std::int64_t>&,
                                                              std::vector<std::string>*);

std::vector<int> peak_in_flight(const ScheduleLists& lists) {
  std::vector<int> peaks;
  for (const auto& list : lists) {
    int now = 0, peak = 0;
    for (const ScheduleOp& op : list) {
      if (op.work == Work::F) peak = std::max(peak, ++now);
      if (op.work == Work::B || op.work == Work::W) --now;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace foreshard
