#include "strategy/tune/order_choice.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/replay.h"
#include "strategy/estimate/estimate.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/schedule/receive_slots.h"
#include "strategy/schedule/schedule_search.h"
#include "strategy/tune/plan_trial.h"
#include "strategy/tune/role_trial.h"

namespace foreshard {

namespace {

constexpr int kRounds = 6;           // of a search whose order did not fit
constexpr double kMostSteps = 20e6;  // orders that a search tries, times the actions of an order
constexpr int kFewestTries = 100;

std::size_t at(int n) { return static_cast<std::size_t>(n); }

PipelineChoice by_rule(const Strategy& strategy, Schedule schedule) {
  PipelineChoice choice = strategy.pipeline;
  choice.schedule = schedule, choice.order.clear();
  return choice;
}

PipelineChoice listed(const Strategy& strategy, const ScheduleLists& lists) {
  PipelineChoice choice = by_rule(strategy, Schedule::Listed);
  for (const auto& list : lists) {
    choice.order.push_back(to_text(ScheduleLists{list}));
    choice.order.back().pop_back();  // the line break
  }
  return choice;
}

// Lists in which every rank runs k forwards first, and then a backward and a forward in turn, so that k micro-batches are in flight.
ScheduleLists ahead(int p, int m, int k) {
  ScheduleLists lists(at(p));
  for (int r = 0; r < p; ++r)
    for (int i = 0; i < m + k; ++i) {
      if (i >= k) lists[at(r)].push_back({Work::I, r, i - k}), lists[at(r)].push_back({Work::W, r, i - k});
      if (i < m) lists[at(r)].push_back({Work::F, r, i});
    }
  return lists;
}

class OrderChoice {
 public:
  OrderChoice(const Model& model, const Cluster& cluster, const Strategy& strategy, const LowerOptions& options)
      : model_(model),
        cluster_(cluster),
        strategy_(strategy),
        options_(options),
        p_(strategy.pp),
        m_(static_cast<int>(strategy.batch.global / (strategy.batch.micro * strategy.dp))) {
    // The order is chosen for the memory there is, even if the caller accepts a plan that does not fit.
    options_.ignore_memory = false;
  }

  PipelineChoice best() {
    const auto stage_times = times();
    for (const ScheduleEntry& entry : rules_with_one_stage_per_rank({.p = p_, .m = m_})) {
      PipelineChoice rule = by_rule(strategy_, entry.id);
      if (entry.by_times && stage_times) rule.times = median_times(*stage_times);
      look_at(rule);
    }
    if (stage_times) search(*stage_times);
    return best_ ? *best_ : by_rule(strategy_, Schedule::OneFOneB);
  }

 private:
  Strategy with(const PipelineChoice& pipeline) const {
    Strategy strategy = strategy_;
    strategy.pipeline = pipeline;
    return strategy;
  }

  void look_at(const PipelineChoice& pipeline) {
    const auto answer = lower(model_, cluster_, with(pipeline), options_);
    const auto* lowered = std::get_if<Lowered>(&answer);
    if (!lowered) return;
    const double seconds = makespan_of(lowered->plan, cluster_, {.granularity = Granularity::Layer});
    if (!best_ || seconds < least_) best_ = pipeline, least_ = seconds;
  }

  std::optional<ScheduleTimes<double>> times() const {
    return trial_times(model_, cluster_, with(listed(strategy_, ahead(p_, m_, std::min(p_, m_)))), options_);
  }

  static void set_order(Lowering& lowering, const ScheduleLists& lists) {
    lowering.tables.schedule.order = lists;
    ReceiveSlots slots = receive_slots(lists, 1);
    lowering.input_slots = std::move(slots.input), lowering.gradient_slots = std::move(slots.gradient);
  }

  // The most micro-batches in flight with which the rank's program fits; 0: not even one.
  int most_in_flight(RoleTrial& trial, int rank) const {
    int fits = 0, beyond = std::min(m_, 2 * p_) + 1;
    for (int k = beyond - 1; fits + 1 < beyond; k = (fits + beyond) / 2) {
      set_order(trial.lowering, ahead(p_, m_, k));
      (trial.fits(rank) ? fits : beyond) = k;
    }
    return fits;
  }

  // An order also keeps gradients between the input gradient and the weight gradient of a micro-batch. Their memory is known only when the
  // order is found; ranks on which it does not fit then get one micro-batch less, and the search begins again.
  void search(const ScheduleTimes<double>& stage_times) {
    auto begun = begin_lowering(model_, cluster_, with(listed(strategy_, ahead(p_, m_, 1))));
    if (!std::holds_alternative<Lowering>(begun)) return;
    RoleTrial trial(std::get<Lowering>(begun), options_.pack_by_order);
    ScheduleSearch search{.microbatches = m_, .times = stage_times};
    const double actions = 3.0 * p_ * m_;
    search.tries = std::clamp(static_cast<int>(kMostSteps / actions), kFewestTries, search.tries);
    for (int rank = 0; rank < p_; ++rank) search.most_in_flight.push_back(most_in_flight(trial, rank));
    for (int round = 0; round < kRounds; ++round) {
      const auto found = search_schedule(search);
      const auto* order = std::get_if<FoundSchedule>(&found);
      if (!order) return;
      bool fits = true;
      set_order(trial.lowering, order->lists);
      for (int rank = 0; rank < p_; ++rank)
        if (!trial.fits(rank)) fits = false, --search.most_in_flight[at(rank)];
      if (fits) return look_at(listed(strategy_, order->lists));
    }
  }

  const Model& model_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  LowerOptions options_;
  int p_, m_;
  std::optional<PipelineChoice> best_ = {};
  double least_ = 0;
};

}  // namespace

PipelineChoice best_order(const Model& model, const Cluster& cluster, const Strategy& strategy, const LowerOptions& options) {
  if (strategy.pp == 1) return by_rule(strategy, Schedule::OneFOneB);  // of one rank there is only one order
  return OrderChoice(model, cluster, strategy, options).best();
}

}  // namespace foreshard
