#include "strategy/residency/plan_offload.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "core/base/count_text.h"
#include "strategy/residency/improve_offload.h"

namespace foreshard {

namespace {

class GreedyOffload {
 public:
  GreedyOffload(const OffloadJob& job, Bytes budget, int window, bool synchronous_early)
      : job_(job), budget_(budget), window_(window), synchronous_early_(synchronous_early) {
    plan_.choices.resize(job.regions.size());
    plan_.timing = offload_timing(job, plan_.choices);
    least_peak_ = plan_.timing.peak;
  }

  // Offloads until the plan fits or no choice is left.
  void run() {
    while (plan_.timing.peak > budget_ && (offload_one() || make_one_synchronous())) {
    }
  }
  const OffloadPlan& plan() const { return plan_; }
  Bytes least_peak() const { return least_peak_; }

 private:
  // Byte-seconds saved per second by which the step gets longer, byte-seconds saved, reduction of the peak in bytes.
  using Profit = std::tuple<double, double, std::int64_t>;
  struct Found {
    Profit profit = {};
    OffloadPlan plan = {};
  };

  int count() const { return static_cast<int>(plan_.choices.size()); }
  int fetched_by(int region) const { return plan_.choices[static_cast<std::size_t>(region)].fetched_by; }
  bool fetches(int region) const {
    return std::find(plan_.choices.begin(), plan_.choices.end(), RegionChoice{region}) != plan_.choices.end();
  }

  void consider(std::optional<Found>& best, int region, int by) {
    Found found = {.plan = {plan_.choices, {}}};
    found.plan.choices[static_cast<std::size_t>(region)].fetched_by = by;
    const OffloadTiming& now = found.plan.timing = offload_timing(job_, found.plan.choices);
    least_peak_ = std::min(least_peak_, now.peak);
    const double longer = std::max((now.end - plan_.timing.end).value, 0.0);
    const double saved = plan_.timing.byte_seconds - now.byte_seconds;
    found.profit = {longer == 0 ? std::numeric_limits<double>::infinity() : saved / longer, saved,
                    (plan_.timing.peak - now.peak).value};
    if (!best || found.profit > best->profit) best = std::move(found);
  }

  bool commit(std::optional<Found>& best) {
    if (best) plan_ = std::move(best->plan);
    return best.has_value();
  }

  bool offload_one() {
    std::optional<Found> best;
    for (int r = 0; r + 1 < count(); ++r) {
      if (fetched_by(r) != RegionChoice::kKept) continue;
      for (int by = r + 1; by <= std::min(r + window_, count() - 1); ++by)
        if (!fetches(by)) consider(best, r, by);
      if (synchronous_early_) consider(best, r, r);
    }
    return commit(best);
  }

  bool make_one_synchronous() {
    std::optional<Found> best;
    for (int r = 0; r + 1 < count(); ++r)
      if (fetched_by(r) != r && fetched_by(r) != RegionChoice::kKept) consider(best, r, r);
    return commit(best);
  }

  const OffloadJob& job_;
  Bytes budget_ = {}, least_peak_ = {};
  int window_ = 0;
  bool synchronous_early_ = false;
  OffloadPlan plan_ = {};
};

}  // namespace

std::variant<OffloadPlan, Infeasible> plan_offload(const OffloadJob& job, Bytes budget, const OffloadSearch& search) {
  std::optional<OffloadPlan> best;
  Bytes least = {std::numeric_limits<std::int64_t>::max()};
  for (const bool synchronous_early : {false, true}) {
    GreedyOffload greedy(job, budget, search.window, synchronous_early);
    greedy.run();
    const OffloadPlan plan = improve_offload(job, budget, search.window, greedy.plan());
    least = std::min({least, greedy.least_peak(), plan.timing.peak});
    if (plan.timing.peak <= budget && (!best || plan.timing.end < best->timing.end)) best = plan;
  }
  if (best) return *best;
  return Infeasible{"offloading reaches " + in_size(least) + ", the budget is " + in_size(budget),
                    {"smaller regions", "a larger budget"}};
}

}  // namespace foreshard
