// One step of a chain of regions whose parameters live in host memory: the cost model of plan_offload. It knows one device, one copy engine
// per direction and the order of the chain, which is what a planner needs to compare choices; the time of a plan comes from its replay.
//
//   h2d      [up 0][up 1][up 2]            [ up 0 ]              prefetched beside region 2's backward
//   compute        [ F0 ][ F1 ][ F2 ][  B2  ][  B1  ][  B0  ]
//   d2h                                       [g2]    [g1]    [g0]
//
// Every region is uploaded in the forward, one region ahead. An offloaded one is freed after its forward and uploaded again for its
// backward. Gradients go to host memory as soon as their region's backward is done. Algorithm: hpcaitech/ColossalAI,
// colossalai/auto_parallel/offload (training_simulator.py); setup of copies and the staging buffer as memory are ours.
#pragma once

#include <vector>

#include "strategy/residency/pcie_link.h"
#include "strategy/residency/residency.h"

namespace foreshard {

// Operations that follow one another; their parameters are copied together.
struct OffloadRegion {
  Bytes parameters = {};   // in 16 bits; gradients have as many
  Bytes activations = {};  // from its forward to the end of its backward
  Seconds forward = {}, backward = {};
  bool operator==(const OffloadRegion&) const = default;
};

struct OffloadJob {
  std::vector<OffloadRegion> regions = {};  // one at least
  PcieLink link = {};
  bool uploads_master = true;  // in 32 bits, cast on the device: twice the bytes, and a staging buffer of the largest region
  bool gradient_in_place =
      false;  // written over the parameters, as the source runs it; else a second buffer, as the source counts it
  bool gradient_apart = false;  // a second buffer that is not in the peak: gradients have places that are always there

  Bytes upload(int region) const;
  Bytes staging() const;  // on the device all the time
};

struct RegionChoice {
  static constexpr int kKept = -1;
  // kKept: stays from the forward to the backward. A later region: offloaded, and uploaded from the start of that region's backward on. The
  // region itself: offloaded, its backward begins with the upload.
  int fetched_by = kKept;
  bool operator==(const RegionChoice&) const = default;
};

struct OffloadTiming {
  Seconds end = {};         // of the last compute and the last gradient's copy
  Bytes peak = {};          // with the staging buffer
  double byte_seconds = 0;  // live bytes over time, without it
  bool operator==(const OffloadTiming&) const = default;
};

// One choice for each region; the last region is kept, and no region fetches two.
OffloadTiming offload_timing(const OffloadJob& job, const std::vector<RegionChoice>& choices);

// Operations put together into regions of at most one size, of all sizes from the largest operation's (at least `least`) to `range` more
// in steps of `step` the one with the least padding. `least` for good copies: PcieLink::size_for.
struct RegionSearch {
  Bytes least = {};
  Bytes range = {std::int64_t{128} << 20};
  Bytes step = {1024};
};
std::vector<OffloadRegion> build_regions(const std::vector<OffloadRegion>& operations, const RegionSearch& search = {});

// [operation]: its region, where consecutive operations share one until it has `least` bytes of parameters; the last one takes what is
// left.
std::vector<int> regions_of_least(const std::vector<Bytes>& operations, Bytes least);

// When the regions' parameters are on the device under such choices; the units are the regions. A region may be read several times in each
// pass, and need not be read in the backward.
std::vector<ParameterUnit> region_units(const OffloadJob& job);
Residency region_residency(const std::vector<RegionChoice>& choices, const std::vector<UnitUse>& uses);

}  // namespace foreshard
