#include "strategy/residency/tensor_offload.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/base/count_text.h"
#include "strategy/residency/live_intervals.h"

namespace foreshard {

namespace {

class TensorPlayer {
 public:
  TensorPlayer(const TensorJob& job, const std::vector<TensorChoice>& choices, bool waits_for_copies)
      : job_(job),
        choices_(choices),
        waits_(waits_for_copies),
        made_(job.tensors.size()),
        fetch_begin_(job.tensors.size()),
        fetched_(job.tensors.size()) {
    FS_ASSERT(choices.size() == job.tensors.size());
    timing_.sent.resize(job.tensors.size());
    for (std::size_t t = 0; t < choices.size(); ++t)
      FS_ASSERT(!sent(t) || (choices[t].fetched_at > job.tensors[t].last_forward_use &&
                             choices[t].fetched_at <= job.tensors[t].used_again_by));
  }

  TensorTiming play() {
    for (int op = 0; op < static_cast<int>(job_.operations.size()); ++op) run(op);
    timing_.end = compute_;  // no copy out ends later, since every tensor that is sent is fetched and read again
    timing_.peak = live_.peak();
    timing_.byte_seconds = live_.byte_seconds();
    return timing_;
  }

 private:
  bool sent(std::size_t t) const { return choices_[t].fetched_at != TensorChoice::kKept; }

  void run(int op) {
    const TimedOperation& operation = job_.operations[at(op)];
    Seconds copies;                                        // end of the copies that are issued at this operation
    for (std::size_t t = 0; t < job_.tensors.size(); ++t)  // tensors that this operation reads and that are fetched on demand
      if (choices_[t].fetched_at == op && job_.tensors[t].used_again_by == op) fetch(t, compute_);
    Seconds start = compute_;
    for (std::size_t t = 0; t < job_.tensors.size(); ++t)
      if (sent(t) && job_.tensors[t].used_again_by == op) start = max(start, fetched_[t]);
    const Seconds end = start + operation.compute;
    for (std::size_t t = 0; t < job_.tensors.size(); ++t) {
      const HeldTensor& tensor = job_.tensors[t];
      if (tensor.made_by == op) made_[t] = start;
      if (sent(t) && tensor.last_forward_use == op) copies = max(copies, send(t, tensor.made_by == op ? end : start, end));
      if (choices_[t].fetched_at == op && tensor.used_again_by != op) copies = max(copies, fetch(t, start));
      if (tensor.used_again_by == op) live_.add(sent(t) ? fetch_begin_[t] : made_[t], end, tensor.bytes);
    }
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

  const TensorJob& job_;
  const std::vector<TensorChoice>& choices_;
  bool waits_ = false;
  std::vector<Seconds> made_ = {}, fetch_begin_ = {}, fetched_ = {};  // [tensor]
  // When the compute stream and the two copy engines are free.
  Seconds compute_ = {}, up_ = {}, down_ = {};
  LiveIntervals live_ = {};
  TensorTiming timing_ = {};
};

// Whether an operation runs between its last forward use and its use in the backward, so that it can be offloaded.
bool can_go(const HeldTensor& tensor) { return tensor.last_forward_use + 1 < tensor.used_again_by; }

void retime(const TensorJob& job, TensorPlan& plan) { plan.timing = tensor_timing(job, plan.choices, plan.waits_for_copies); }

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

TensorPlan by_free_time(const TensorJob& job, Bytes budget) {
  TensorPlan plan = {.choices = std::vector<TensorChoice>(job.tensors.size())};
  retime(job, plan);
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
    retime(job, plan);
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

TensorPlan improved(const TensorJob& job, Bytes budget, TensorPlan plan) {
  for (bool found = true; found;) {
    found = false;
    TensorPlan best = plan, tried = plan;
    for (std::size_t t = 0; t < job.tensors.size(); ++t) {
      for (const TensorChoice choice : changes_of(job.tensors[t], plan.choices[t])) {
        tried.choices[t] = choice;
        retime(job, tried);
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
  return TensorPlayer(job, choices, waits_for_copies).play();
}

TensorPlan vdnn_offload(const TensorJob& job, VdnnScope scope) {
  TensorPlan plan = {.waits_for_copies = true};
  for (const HeldTensor& tensor : job.tensors) {
    const bool goes = can_go(tensor) && (scope == VdnnScope::All || tensor.convolution_input);
    plan.choices.push_back({goes ? tensor.used_again_by - 1 : TensorChoice::kKept});
  }
  retime(job, plan);
  return plan;
}

std::variant<TensorPlan, Infeasible> free_time_offload(const TensorJob& job, Bytes budget) {
  const TensorPlan everything = vdnn_offload(job, VdnnScope::All);
  const TensorPlan from_everything = improved(job, budget, everything),
                   chosen = improved(job, budget, by_free_time(job, budget));
  const TensorPlan& best = is_better(from_everything, chosen, budget) ? from_everything : chosen;
  if (best.timing.peak <= budget) return best;
  return Infeasible{
      "sending tensors to host memory reaches " + in_size(best.timing.peak) + ", the budget is " + in_size(budget),
      {"fewer samples", "a larger budget"}};
}

}  // namespace foreshard
