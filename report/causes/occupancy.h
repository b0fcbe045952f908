// Occupancy: how long each class communicates, exposed and hidden, and how long each stage takes per micro-batch.
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
  Nanoseconds hidden = {};         // a compute stream is busy, and a communication or copy stream too
  bool operator==(const Occupancy&) const = default;
};

// The segment sums of each role; roles of one device kind share a table.
struct SumsByRole {
  std::vector<SegmentSums> tables = {};
  std::vector<std::size_t> of_role = {};  // [role]: index in `tables`
  const SegmentSums& operator[](RoleId role) const { return tables[of_role[role.index()]]; }
};
SumsByRole sums_by_role(const Plan& plan);

// [class]
std::vector<Occupancy> occupancy(const Plan& plan, const Trace& trace, const SumsByRole& sums);

// [stage]: the shortest time that a micro-batch took on the compute stream, without waiting. A backward counts as weight
// gradient for the isolated times of its weight-gradient instructions, and as input gradient for the rest, recomputation
// included. p2p: the shortest transfer to or from another stage. 0 where the trace has none.
std::vector<StageTimes> stage_times(const Plan& plan, const Trace& trace, const SumsByRole& sums);

}  // namespace foreshard
