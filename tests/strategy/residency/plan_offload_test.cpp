// The greedy offload planner against every choice there is.
#include "strategy/residency/plan_offload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>

#include "tests/strategy/residency/support_page.h"

namespace foreshard::plan_offload_test {

namespace {

// The fastest of all choices within the budget, and the smallest peak of all.
struct Best {
  std::optional<OffloadPlan> plan = {};
  Bytes least_peak = {std::numeric_limits<std::int64_t>::max()};
};

void try_all(const OffloadJob& job, Bytes budget, const OffloadSearch& search, std::vector<RegionChoice>& choices,
             std::size_t region, Best& best) {
  const int count = static_cast<int>(choices.size()), r = static_cast<int>(region);
  if (r + 1 >= count) {
    const OffloadTiming timing = offload_timing(job, choices);
    best.least_peak = std::min(best.least_peak, timing.peak);
    if (timing.peak <= budget && (!best.plan || timing.end < best.plan->timing.end)) best.plan = OffloadPlan{choices, timing};
    return;
  }
  for (int by = RegionChoice::kKept; by <= std::min(r + search.window, count - 1); ++by) {
    if (by >= 0 && by < r) continue;
    if (by > r && std::find(choices.begin(), choices.begin() + r, RegionChoice{by}) != choices.begin() + r) continue;
    choices[region] = {by};
    try_all(job, budget, search, choices, region + 1, best);
  }
  choices[region] = {};
}

Best best_of_all(const OffloadJob& job, Bytes budget, const OffloadSearch& search = {}) {
  Best best;
  std::vector<RegionChoice> choices(job.regions.size());
  try_all(job, budget, search, choices, 0, best);
  return best;
}

class Instances {
 public:
  OffloadJob next() {
    OffloadJob job = {.link = {{number(0, 2) * 0.25}, {static_cast<double>(number(2, 12))}},
                      .uploads_master = number(0, 1) == 1,
                      .gradient_in_place = number(0, 3) == 0};
    const int regions = number(2, 6);
    for (int r = 0; r < regions; ++r) {
      const int forward = number(1, 6);
      job.regions.push_back({{number(1, 12)}, {number(0, 8)}, {1.0 * forward}, {1.0 * forward * number(1, 3)}});
    }
    return job;
  }
  int number(int least, int most) { return least + static_cast<int>(random_() % static_cast<unsigned>(most - least + 1)); }

 private:
  std::mt19937 random_{23};
};

// At four budgets from the smallest possible peak to that of keeping everything.
PlanQuality quality_of(int jobs, const OffloadSearch& search) {
  PlanQuality quality;
  Instances instances;
  for (int i = 0; i < jobs; ++i) {
    const OffloadJob job = instances.next();
    const Bytes least = best_of_all(job, {}, search).least_peak;
    const Bytes most = offload_timing(job, std::vector<RegionChoice>(job.regions.size())).peak;
    for (const std::int64_t part : {0, 1, 2, 3}) {
      const Bytes budget = least + Bytes{(most - least).value * part / 4};
      const auto result = plan_offload(job, budget, search);
      const auto* plan = std::get_if<OffloadPlan>(&result);
      if (plan == nullptr) {
        ADD_FAILURE() << "instance " << i << ": " << std::get<Infeasible>(result).reason;
        continue;
      }
      EXPECT_LE(plan->timing.peak, budget) << i;
      EXPECT_EQ(plan->timing, offload_timing(job, plan->choices)) << i;
      EXPECT_EQ(residency_fault(region_units(job), step_order(static_cast<int>(job.regions.size())),
                                region_residency(plan->choices, step_order(static_cast<int>(job.regions.size())))),
                "");
      const double ratio = plan->timing.end.value / best_of_all(job, budget, search).plan->timing.end.value;
      EXPECT_GE(ratio, 1 - 1e-12);
      quality.add(ratio);
    }
  }
  return quality;
}

}  // namespace

TEST(PlanOffload, IsNearTheBestOfAllChoices) {
  const PlanQuality quality = quality_of(200, {});
  EXPECT_GE(quality.instances, 600);
  EXPECT_LE(quality.mean(), 1.01);
  EXPECT_LE(quality.worst, 1.25);
  EXPECT_EQ(quality.row(), offload_page_row("prefetched or synchronous regions"));
}

TEST(PlanOffload, SynchronousVariantIsNearTheBestOfItsChoices) {
  const PlanQuality quality = quality_of(200, {.window = 0});
  EXPECT_LE(quality.mean(), 1.01);
  EXPECT_LE(quality.worst, 1.25);
  EXPECT_EQ(quality.row(), offload_page_row("synchronous regions only"));
}

// 48 equal regions whose copies are as long as their computes, at half of the room for their parameters: the uploads hide.
TEST(PlanOffload, ALongChainHidesItsUploads) {
  OffloadJob job = {
      .regions = std::vector<OffloadRegion>(48, {{100}, {1}, {1}, {2}}), .link = {{0}, {100}}, .uploads_master = false};
  const OffloadTiming kept = offload_timing(job, std::vector<RegionChoice>(48));
  const auto plan = std::get<OffloadPlan>(plan_offload(job, {kept.peak.value - 2400}));
  EXPECT_LE(plan.timing.peak.value, kept.peak.value - 2400);
  EXPECT_EQ(plan.timing.end, kept.end);
}

TEST(PlanOffload, InfeasibleSaysTheSmallestPeak) {
  Instances instances;
  for (int i = 0; i < 50; ++i) {
    const OffloadJob job = instances.next();
    const Bytes least = best_of_all(job, {}).least_peak;
    EXPECT_TRUE(std::holds_alternative<Infeasible>(plan_offload(job, least - Bytes{1}))) << i;
  }
  const OffloadRegion region = {{10 << 20}, {5 << 20}, {2}, {3}};
  const auto result = plan_offload({.regions = {region, region}, .uploads_master = false}, {1 << 20});
  EXPECT_EQ(std::get<Infeasible>(result).reason, "offloading reaches 30.00 MiB, the budget is 1.00 MiB");
}

}  // namespace foreshard::plan_offload_test
