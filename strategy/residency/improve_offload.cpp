#include "strategy/residency/improve_offload.h"

#include <algorithm>
#include <utility>

#include "core/base/at.h"

namespace foreshard {

namespace {

class Improvement {
 public:
  Improvement(const OffloadJob& job, Bytes budget, int window, OffloadPlan& plan)
      : job_(job), budget_(budget), window_(window), plan_(plan), best_(plan), tried_(plan.choices) {}

  // Finds the best small change, see best(); false if none helps.
  bool step() {
    for (int region = 0; region + 1 < count(); ++region)
      for (const RegionChoice choice : choices_of(region)) change(region, choice);
    return cost(best_.timing) < cost(plan_.timing);
  }
  const OffloadPlan& best() const { return best_; }

 private:
  int count() const { return static_cast<int>(tried_.size()); }
  std::pair<std::int64_t, double> cost(const OffloadTiming& timing) const {
    return {std::max<std::int64_t>((timing.peak - budget_).value, 0), timing.end.value};
  }

  std::vector<RegionChoice> choices_of(int region) const {
    std::vector<RegionChoice> choices = {{}};
    for (int by = region; by <= std::min(region + window_, count() - 1); ++by) choices.push_back({by});
    return choices;
  }
  // Another region that the region `choice.fetched_by` fetches already; -1: there is none.
  int in_the_way(int region, RegionChoice choice) const {
    if (choice.fetched_by == RegionChoice::kKept || choice.fetched_by == region) return -1;
    for (int other = 0; other < choice.fetched_by; ++other)
      if (other != region && tried_[at(other)] == choice) return other;
    return -1;
  }

  void change(int region, RegionChoice choice) {
    const RegionChoice before = std::exchange(tried_[at(region)], choice);
    const int other = before == choice ? -1 : in_the_way(region, choice);
    if (before != choice && other < 0) keep_if_better();
    if (other >= 0) {
      const RegionChoice others = tried_[at(other)];
      for (const RegionChoice instead : choices_of(other)) {
        tried_[at(other)] = instead;
        if (instead != others && in_the_way(other, instead) < 0) keep_if_better();
      }
      tried_[at(other)] = others;
    }
    tried_[at(region)] = before;
  }

  void keep_if_better() {
    const OffloadTiming timing = offload_timing(job_, tried_);
    if (cost(timing) < cost(best_.timing)) best_ = {tried_, timing};
  }

  const OffloadJob& job_;
  Bytes budget_ = {};
  int window_ = 0;
  const OffloadPlan& plan_;
  OffloadPlan best_ = {};
  std::vector<RegionChoice> tried_ = {};
};

}  // namespace

OffloadPlan improve_offload(const OffloadJob& job, Bytes budget, int window, OffloadPlan plan) {
  while (true) {
    Improvement improvement(job, budget, window, plan);
    if (!improvement.step()) return plan;
    plan = improvement.best();
  }
}

}  // namespace foreshard
