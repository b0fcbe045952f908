#include "strategy/residency/offload_timing.h"

#include <gtest/gtest.h>

#include "strategy/residency/live_intervals.h"

namespace foreshard::offload_timing_test {

namespace {

// Two regions of 10 B, activations of 5 B, forwards of 2 s, backwards of 3 s; copies at 10 B/s.
OffloadJob two_regions() {
  const OffloadRegion region = {{10}, {5}, {2}, {3}};
  return {.regions = {region, region}, .link = {{0}, {10}}, .uploads_master = false};
}

}  // namespace

TEST(PcieLink, BucketRule) {
  const PcieLink link;  // 10 us, 25 GB/s
  EXPECT_EQ(link.size_for(0.5), Bytes{250'000});
  EXPECT_EQ(link.size_for(0.95), Bytes{4'750'000});
  EXPECT_DOUBLE_EQ(link.efficiency({250'000}), 0.5);
  EXPECT_DOUBLE_EQ(link.efficiency({4'750'000}), 0.95);
  EXPECT_DOUBLE_EQ(link.time({25'000'000}).value, 1.01e-3);
}

TEST(LiveIntervals, WhatLeavesMakesRoomAtOnce) {
  LiveIntervals live;
  live.add({0}, {2}, {10});
  live.add({2}, {3}, {10});
  live.add({1}, {2}, {4});
  EXPECT_EQ(live.peak(), Bytes{14});
  EXPECT_DOUBLE_EQ(live.byte_seconds(), 20 + 10 + 4);
}

// up 0 [0 1], F0 [1 3] beside up 1 [1 2], F1 [3 5], B1 [5 8], gradient 1 [8 9], B0 [8 11], gradient 0 [11 12].
// Peak in B1: both parameters, both activations, a gradient: 40. Bytes x seconds: w0 110, w1 70, a0 50, a1 25, g1 40, g0 40.
TEST(OffloadTiming, KeptRegions) { EXPECT_EQ(offload_timing(two_regions(), {{}, {}}), (OffloadTiming{{12}, {40}, 335})); }

// Region 0 is gone from 3 to 5: up again [5 6] beside B1. It is there at the peak all the same.
TEST(OffloadTiming, PrefetchedRegion) { EXPECT_EQ(offload_timing(two_regions(), {{1}, {}}), (OffloadTiming{{12}, {40}, 315})); }

// Gone from 3 to 8: up [8 9], B0 [9 12], gradient [12 13]. Peak in B1: w1, a0, a1, g1.
TEST(OffloadTiming, SynchronousRegion) {
  EXPECT_EQ(offload_timing(two_regions(), {{0}, {}}), (OffloadTiming{{13}, {30}, 300}));
}

// A slow upload: 4 s. up 0 [0 4], F0 [4 6] beside up 1 [4 8], F1 [8 10], B1 [10 13] beside up 0 [10 14], B0 [14 17], gradient [17 21].
TEST(OffloadTiming, ComputeWaitsForALatePrefetch) {
  OffloadJob job = two_regions();
  job.link.bandwidth = {2.5};
  EXPECT_EQ(offload_timing(job, {{1}, {}}).end, Seconds{21});
}

// Kept, and gradients of 4 s each: B1 [10 13], gradient 1 [13 17], B0 [13 16], gradient 0 behind it [17 21].
TEST(OffloadTiming, GradientsQueue) {
  OffloadJob job = two_regions();
  job.link.bandwidth = {2.5};
  EXPECT_EQ(offload_timing(job, {{}, {}}).end, Seconds{21});
}

// Three regions: F2 [12 14], B2 [14 17] beside up 0 [14 18]; region 1's upload, issued at 17, begins behind it [18 22]. B1 [22 25],
// gradient 1 [25 29], B0 [25 28], gradient 0 [29 33].
TEST(OffloadTiming, UploadsQueue) {
  OffloadJob job = two_regions();
  job.regions.push_back(job.regions[0]);
  job.link.bandwidth = {2.5};
  EXPECT_EQ(offload_timing(job, {{2}, {1}, {}}).end, Seconds{33});
}

// Uploads of 20 B take 2 s and 0.5 s of setup, gradients 1.5 s: up 0 [0 2.5], F0 [2.5 4.5], up 1 [2.5 5], F1 [5 7], B1 [7 10], B0 [10 13],
// gradient [13 14.5]. 40 B as before and a staging buffer of 20.
TEST(OffloadTiming, MasterCopiesAreTwiceAsLargeAndStaged) {
  OffloadJob job = two_regions();
  job.uploads_master = true;
  job.link.setup = {0.5};
  EXPECT_EQ(offload_timing(job, {{}, {}}).end, Seconds{14.5});
  EXPECT_EQ(offload_timing(job, {{}, {}}).peak, Bytes{60});
}

// Without second buffers the peak is w0, w1, a0, a1; each region's parameters stay until its gradient is in host memory.
TEST(OffloadTiming, GradientsOverParameters) {
  OffloadJob job = two_regions();
  job.gradient_in_place = true;
  EXPECT_EQ(offload_timing(job, {{}, {}}), (OffloadTiming{{12}, {30}, 120.0 + 80 + 50 + 25}));
}

// 6 | 5 | 4 3 in blocks of 8 leave 6, 6 5 | 4 3 in blocks of 11 leave 4, the least up to 13. Times and activations add up.
TEST(BuildRegions, TakesTheSizeWithTheLeastPadding) {
  const auto operation = [](std::int64_t bytes) { return OffloadRegion{{bytes}, {1}, {1}, {2}}; };
  const std::vector<OffloadRegion> operations = {operation(6), operation(5), operation(0), operation(4), operation(3)};
  const std::vector<OffloadRegion> regions = {{{11}, {3}, {3}, {6}}, {{7}, {2}, {2}, {4}}};
  EXPECT_EQ(build_regions(operations, {.least = {8}, .range = {5}, .step = {1}}), regions);
  // The largest operation alone sets the block, or the least size of a good copy.
  EXPECT_EQ(build_regions(operations, {.range = {0}, .step = {1}}).size(), 4u);
  EXPECT_EQ(build_regions(operations, {.least = {18}, .range = {0}, .step = {1}}).size(), 1u);
}

// With places of their own gradients are not in the peak, and their copies still end the step: 10 bytes of parameters of each region.
TEST(OffloadTiming, GradientsApart) {
  OffloadJob job = two_regions();
  const OffloadTiming beside = offload_timing(job, {{}, {}});
  job.gradient_apart = true;
  const OffloadTiming apart = offload_timing(job, {{}, {}});
  EXPECT_EQ(apart.end, beside.end);
  EXPECT_LT(apart.peak, beside.peak);
  EXPECT_LT(apart.byte_seconds, beside.byte_seconds);
}

// 3 4 | 9 | 0 2 5 | 1: a region ends with the operation that reaches 7, and the last one, too small, joins it.
TEST(RegionsOfLeast, ConsecutiveOperationsShareARegion) {
  EXPECT_EQ(regions_of_least({{3}, {4}, {9}, {0}, {2}, {5}, {1}}, {7}), (std::vector<int>{0, 0, 1, 2, 2, 2, 2}));
  EXPECT_EQ(regions_of_least({{3}, {4}}, {100}), (std::vector<int>{0, 0}));
  EXPECT_EQ(regions_of_least({{3}, {4}}, {}), (std::vector<int>{0, 1}));
}

// Moments of three regions: F0 F1 F2 B2 B1 B0. Region 0 is fetched beside B2, region 1 when its own backward begins.
TEST(RegionResidency, StaysFollowTheChoices) {
  OffloadJob job = two_regions();
  job.regions.push_back(job.regions[0]);
  const std::vector<RegionChoice> choices = {{2}, {1}, {}};
  const Residency residency = region_residency(choices, step_order(static_cast<int>(choices.size())));
  EXPECT_EQ(residency_fault(region_units(job), step_order(3), residency), "");
  EXPECT_EQ(residency.stays, (std::vector<Stay>{{0, 0, 0, 0}, {1, 0, 1, 1}, {2, 1, 2, 3}, {0, 3, 5, 5}, {1, 4, 4, 4}}));
  EXPECT_EQ(resident_elements(region_units(job), step_order(3), residency), (ElementCurve{10, 10, 5, 10, 10, 5}));
}

// Region 0 has two layers, the first of them is not read in the backward: F a b 1 2, B 2 1 b. It is fetched beside region 2, as region 1 is
// when it is used.
TEST(RegionResidency, RegionsOfSeveralLayers) {
  using enum Phase;
  const std::vector<UnitUse> uses = {{0, Forward},  {0, Forward},  {1, Forward}, {2, Forward},
                                     {2, Backward}, {1, Backward}, {0, Backward}};
  EXPECT_EQ(region_residency({{2}, {1}, {}}, uses).stays,
            (std::vector<Stay>{{0, 0, 0, 1}, {1, 0, 2, 2}, {2, 2, 3, 4}, {0, 4, 6, 6}, {1, 5, 5, 5}}));
  // Region 1 is fetched when its own backward begins, and region 0 beside it: what is used first comes first.
  EXPECT_EQ(region_residency({{1}, {1}}, step_order(2)).stays,
            (std::vector<Stay>{{0, 0, 0, 0}, {1, 0, 1, 1}, {1, 2, 2, 2}, {0, 2, 3, 3}}));
  // A region that is not read again leaves with its forward, kept or not.
  const std::vector<UnitUse> ends = {{0, Forward}, {1, Forward}, {1, Backward}};
  EXPECT_EQ(region_residency({{}, {}}, ends).stays, (std::vector<Stay>{{0, 0, 0, 0}, {1, 0, 1, 2}}));
  EXPECT_EQ(region_residency({{1}, {}}, ends).stays, (std::vector<Stay>{{0, 0, 0, 0}, {1, 0, 1, 2}}));
}

}  // namespace foreshard::offload_timing_test
