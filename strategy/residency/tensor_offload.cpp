#include "strategy/residency/tensor_offload.h"

#include <algorithm>
#include <utility>

#include "core/base/at.h"
#include "core/base/count_text.h"
#include "strategy/residency/live_intervals.h"

namespace foreshard {

namespace {

// One for all timings of a job: a search takes thousands.
class TensorPlayer {
 public:
  explicit TensorPlayer(const TensorJob& job)
      : job_(job),
        made_(job.tensors.size()),
        fetch_begin_(job.tensors.size()),
        fetched_(job.tensors.size()),
        at_(job.operations.size()) {
    for (std::size_t t = 0; t < job.tensors.size(); ++t) {
      at_[at(job.tensors[t].made_by)].made.push_back(t);
      at_[at(last_read(job.tensors[t]))].freed.push_back(t);
    }
  }

  void time(TensorPlan& plan) {
    begin(plan);
    for (int op = 0; op < static_cast<int>(job_.operations.size()); ++op) run(op);
    timing_.end = compute_;  // no copy out ends later, since every tensor that is sent is fetched and read again
    timing_.peak = live_.peak();
    timing_.byte_seconds = live_.byte_seconds();
    std::swap(plan.timing, timing_);  // its arrays are used again
  }

 private:
  void begin(const TensorPlan& plan) {
    FS_ASSERT(plan.choices.size() == job_.tensors.size());
    choices_ = plan.choices.data(), waits_ = plan.waits_for_copies;
    compute_ = up_ = down_ = {};
    live_.clear();
    timing_.starts.clear();
    timing_.sent.assign(job_.tensors.size(), {});
    for (AtOperation& here : at_) here.sent.clear(), here.fetched.clear(), here.awaited.clear();
    for (std::size_t t = 0; t < job_.tensors.size(); ++t) {
      if (!sent(t)) continue;
      const HeldTensor& tensor = job_.tensors[t];
      FS_ASSERT(choices_[t].fetched_at > tensor.last_forward_use && choices_[t].fetched_at <= tensor.used_again_by);
      at_[at(tensor.last_forward_use)].sent.push_back(t);
      at_[at(tensor.used_again_by)].awaited.push_back(t);
      at_[at(choices_[t].fetched_at)].fetched.push_back(t);
    }
  }

  bool sent(std::size_t t) const { return choices_[t].fetched_at != TensorChoice::kKept; }

  static int last_read(const HeldTensor& tensor) { return std::max(tensor.used_again_by, tensor.read_until); }

  void run(int op) {
    const TimedOperation& operation = job_.operations[at(op)];
    const AtOperation& here = at_[at(op)];
    const auto on_demand = [&](std::size_t t) { return job_.tensors[t].used_again_by == op; };
    Seconds copies;                           // end of the copies that are issued at this operation
    for (const std::size_t t : here.fetched)  // tensors that this operation reads and that are fetched on demand
      if (on_demand(t)) fetch(t, compute_);
    Seconds start = compute_;
    for (const std::size_t t : here.awaited) start = max(start, fetched_[t]);
    const Seconds end = start + operation.compute;
    for (const std::size_t t : here.made) made_[t] = start;
    for (const std::size_t t : here.sent) copies = max(copies, send(t, job_.tensors[t].made_by == op ? end : start, end));
    for (const std::size_t t : here.fetched)
      if (!on_demand(t)) copies = max(copies, fetch(t, start));
    for (const std::size_t t : here.freed) live_.add(sent(t) ? fetch_begin_[t] : made_[t], end, job_.tensors[t].bytes);
    live_.add(start, end, operation.others);
    timing_.starts.push_back(start);
    compute_ = waits_ ? max(end, copies) : end;
  }

  Seconds send(std::size_t t, Seconds issued, Seconds read) {
    down_ = max(down_, issued) + job_.link.time(job_.tensors[t].bytes);
    timing_.sent[t] = down_;
    live_.add(made_[t], max(down_, read), job_.tensors[t].bytes);
    return down_;
  }
  Seconds fetch(std::size_t t, Seconds issued) {
    fetch_begin_[t] = max(max(up_, issued), timing_.sent[t]);
    up_ = fetched_[t] = fetch_begin_[t] + job_.link.time(job_.tensors[t].bytes);
    return up_;
  }

  struct AtOperation {
    std::vector<std::size_t> made = {}, sent = {}, fetched = {}, awaited = {}, freed = {};  // tensors
  };

  const TensorJob& job_;
  const TensorChoice* choices_ = nullptr;  // [tensor]
  bool waits_ = false;
  std::vector<Seconds> made_ = {}, fetch_begin_ = {}, fetched_ = {};  // [tensor]
  std::vector<AtOperation> at_ = {};                                  // [operation]
  // When the compute stream and the two copy engines are free.
  Seconds compute_ = {}, up_ = {}, down_ = {};
  LiveIntervals live_ = {};
  TensorTiming timing_ = {};
};

// Whether an operation runs between its last forward use and its use in the backward, so that it can be offloaded.
bool can_go(const HeldTensor& tensor) { return tensor.last_forward_use + 1 < tensor.used_again_by; }

// Compares the excess over the budget. With equal excess above 0 compares byte-seconds (as several instants may have the same peak), and
// within the budget the time of the step.
bool is_better(const TensorPlan& a, const TensorPlan& b, Bytes budget) {
  const auto above = [&](const TensorPlan& plan) { return std::max(plan.timing.peak - budget, Bytes{}); };
  if (above(a) != above(b)) return above(a) < above(b);
  return above(a) > Bytes{} ? a.timing.byte_seconds < b.timing.byte_seconds : a.timing.end < b.timing.end;
}

// The latest operation from whose start a fetch would end before the use in the backward begins, by this timing; the operation after the
// last forward use if there is none.
int trigger_in_time(const TensorJob& job, const TensorTiming& timing, const HeldTensor& tensor) {
  const Seconds latest = timing.starts[at(tensor.used_again_by)] - job.link.time(tensor.bytes);
  int op = tensor.used_again_by - 1;
  while (op > tensor.last_forward_use + 1 && timing.starts[at(op)] > latest) --op;
  return op;
}

// The free time of a kept tensor (see the header) if it were offloaded, by this timing.
Seconds free_time(const TensorJob& job, const TensorTiming& timing, const HeldTensor& tensor) {
  const Seconds copy = job.link.time(tensor.bytes), read = timing.starts[at(tensor.last_forward_use)];
  const Seconds issued = tensor.made_by == tensor.last_forward_use ? timing.starts[at(tensor.last_forward_use + 1)] : read;
  return timing.starts[at(tensor.used_again_by)] - copy - (issued + copy);
}

TensorPlan by_free_time(const TensorJob& job, TensorPlayer& player, Bytes budget) {
  TensorPlan plan = {.choices = std::vector<TensorChoice>(job.tensors.size())};
  player.time(plan);
  while (plan.timing.peak > budget) {
    int longest = -1;
    for (int t = 0; t < static_cast<int>(job.tensors.size()); ++t) {
      if (plan.choices[at(t)] != TensorChoice{} || !can_go(job.tensors[at(t)])) continue;
      if (longest < 0 ||
          free_time(job, plan.timing, job.tensors[at(t)]) > free_time(job, plan.timing, job.tensors[at(longest)]))
        longest = t;
    }
    if (longest < 0) break;
    plan.choices[at(longest)] = {trigger_in_time(job, plan.timing, job.tensors[at(longest)])};
    player.time(plan);
  }
  return plan;
}

// The other choices that are tried for one tensor.
std::vector<TensorChoice> changes_of(const HeldTensor& tensor, TensorChoice now) {
  if (!can_go(tensor)) return {};
  std::vector<TensorChoice> changes = {{}, {tensor.used_again_by}, {tensor.used_again_by - 1}};
  if (now != TensorChoice{} && now.fetched_at > tensor.last_forward_use + 1) changes.push_back({now.fetched_at - 1});
  if (now != TensorChoice{} && now.fetched_at < tensor.used_again_by) changes.push_back({now.fetched_at + 1});
  return changes;
}

TensorPlan improved(const TensorJob& job, TensorPlayer& player, Bytes budget, TensorPlan plan, std::int64_t timings) {
  for (bool found = true; found && timings > 0;) {
    found = false;
    TensorPlan best = plan, tried = plan;
    for (std::size_t t = 0; t < job.tensors.size(); ++t) {
      for (const TensorChoice choice : changes_of(job.tensors[t], plan.choices[t])) {
        tried.choices[t] = choice;
        player.time(tried), --timings;
        if (is_better(tried, best, budget)) best = tried, found = true;
      }
      tried.choices[t] = plan.choices[t];
    }
    plan = best;
  }
  return plan;
}

}  // namespace

TensorTiming tensor_timing(const TensorJob& job, const std::vector<TensorChoice>& choices, bool waits_for_copies) {
  TensorPlan plan{.choices = choices, .waits_for_copies = waits_for_copies};
  TensorPlayer(job).time(plan);
  return plan.timing;
}

TensorPlan vdnn_offload(const TensorJob& job, VdnnScope scope) {
  TensorPlan plan = {.waits_for_copies = true};
  for (const HeldTensor& tensor : job.tensors) {
    const bool goes = can_go(tensor) && (scope == VdnnScope::All || tensor.convolution_input);
    plan.choices.push_back({goes ? tensor.used_again_by - 1 : TensorChoice::kKept});
  }
  plan.timing = tensor_timing(job, plan.choices, plan.waits_for_copies);
  return plan;
}

std::variant<TensorPlan, Infeasible> free_time_offload(const TensorJob& job, Bytes budget, const TensorSearch& search) {
  const TensorPlan everything = vdnn_offload(job, VdnnScope::All);
  TensorPlayer player(job);
  const TensorPlan from_everything = improved(job, player, budget, everything, search.timings),
                   chosen = improved(job, player, budget, by_free_time(job, player, budget), search.timings);
  const TensorPlan& best = is_better(from_everything, chosen, budget) ? from_everything : chosen;
  if (best.timing.peak <= budget) return best;
  return Infeasible{
      "sending tensors to host memory reaches " + in_size(best.timing.peak) + ", the budget is " + in_size(budget),
      {"fewer samples", "a larger budget"}};
}

}  // namespace foreshard
