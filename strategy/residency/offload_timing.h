// Time and memory of one training step of a chain of regions whose parameters' home is host memory: the cost model of plan_offload. It
// models one device, one copy engine per direction and the order of the chain, which is enough to compare choices; the time that is
// reported comes from a replay of the plan.
//
//   h2d      [up 0][up 1][up 2]            [ up 0 ]              prefetched beside region 2's backward
//   compute        [ F0 ][ F1 ][ F2 ][  B2  ][  B1  ][  B0  ]
//   d2h                                       [g2]    [g1]    [g0]
//
// Every region is uploaded in the forward, one region ahead. An offloaded region is freed after its forward and uploaded again for its
// backward. Gradients (g) are copied to host memory as soon as their region's backward is done. Algorithm: hpcaitech/ColossalAI,
// colossalai/auto_parallel/offload (training_simulator.py); the setup time of copies and the memory of the staging buffer are ours.
#pragma once

#include <vector>

#include "strategy/residency/pcie_link.h"
#include "strategy/residency/residency.h"

namespace foreshard {

// Consecutive operations whose parameters are copied together.
struct OffloadRegion {
  Bytes parameters = {};                // in 16-bit numbers; gradients have as many bytes
  Bytes activations = {};               // live from its forward to the end of its backward
  Seconds forward = {}, backward = {};  // of its computes
  bool operator==(const OffloadRegion&) const = default;
};

struct OffloadJob {
  std::vector<OffloadRegion> regions = {};  // at least one
  PcieLink link = {};
  // The 32-bit master copy is uploaded and cast on the device: twice the bytes, and a staging buffer as large as the largest upload.
  bool uploads_master = true;
  // Gradients are written over the parameters, as ColossalAI runs it; else into a second buffer, as its simulator counts it.
  bool gradient_in_place = false;

  Bytes upload(int region) const;  // bytes of an upload of the region
  Bytes staging() const;           // bytes of the staging buffer, which is always allocated; 0 without uploads_master
};

struct RegionChoice {
  static constexpr int kKept = -1;
  // kKept: the region stays on the device from its forward to its backward. Else it is offloaded. A later region: the upload begins with
  // that region's backward. The region itself: its own backward begins with the upload and waits for it ("synchronous").
  int fetched_by = kKept;
  bool operator==(const RegionChoice&) const = default;
};

struct OffloadTiming {
  Seconds end = {};         // end of the last compute or of the last gradient's copy; the step begins at 0
  Bytes peak = {};          // the most live bytes, staging buffer included
  double byte_seconds = 0;  // integral of live bytes over time, without the staging buffer
  bool operator==(const OffloadTiming&) const = default;
};

// `choices`: one for each region. The last region must be kept, and no region may fetch two others.
OffloadTiming offload_timing(const OffloadJob& job, const std::vector<RegionChoice>& choices);

// Joins consecutive operations to regions of at most a certain size. The size is the one with the least padding (chunks.h) among s,
// s + step, ..., s + range, where s is the larger of the largest operation's parameters and `least`. A good `least` for fast copies is
// PcieLink::size_for.
struct RegionSearch {
  Bytes least = {};
  Bytes range = {std::int64_t{128} << 20};
  Bytes step = {1024};
};
std::vector<OffloadRegion> build_regions(const std::vector<OffloadRegion>& operations, const RegionSearch& search = {});

// The choices as a Residency: its units are the regions, its uses step_order(number of regions).
std::vector<ParameterUnit> region_units(const OffloadJob& job);
Residency region_residency(const std::vector<RegionChoice>& choices);

}  // namespace foreshard
