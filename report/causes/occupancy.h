// Occupancy: how the compute and communication streams of each class fill the makespan, and the stages' own times.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/summary.h"
#include "core/result/trace.h"
#include "report/causes/segment_sums.h"

namespace foreshard {

struct Occupancy {                 // of one class
  Nanoseconds communicating = {};  // collectives, exchanges and copies on the compute streams
  Nanoseconds hidden = {};         // some communication stream and some compute stream are both busy
  bool operator==(const Occupancy&) const = default;
};

// One per role: the sums that belong to its device kind. Indices into `tables`.
struct SumsByRole {
  std::vector<SegmentSums> tables = {};
  std::vector<std::size_t> of_role = {};
  const SegmentSums& operator[](RoleId role) const { return tables[of_role[role.index()]]; }
};
SumsByRole sums_by_role(const Plan& plan);

// [class]
std::vector<Occupancy> occupancy(const Plan& plan, const Trace& trace, const SumsByRole& sums);

// [stage]: the shortest time that any micro-batch took on the compute stream, waiting left out; a backward is split by
// the isolated times of its weight gradients, and the recomputation counts as input gradient. p2p: the shortest
// transfer to or from another stage. 0 where the trace has none.
std::vector<StageTimes> stage_times(const Plan& plan, const Trace& trace, const SumsByRole& sums);

}  // namespace foreshard
