// Residency: when units of parameters are on the device, as a whole, during one step. A planner of this folder makes it from the
// units and the order of their uses; lowering obeys it. There are no times in it, only an order; sizes are numbers of elements.
//
//   unit     parameters that are gathered over ranks, or copied from host memory, together: a module, a block, a bucket, a chunk
//   use      the forward, the recomputation or the backward of one unit
//   moment   the place of a use in the order of the step: 0, 1, ...
//   stay     from the start of a unit's gather (or of its copy to the device) to its release
//
//   moment       0          1          2          3          4          5
//   use          forward a  forward b  forward c  backward c backward b backward a
//   b is there   [=====================]          [=====================]
//                brought 0, first use 1, left 1   brought 3, first use 4, left 4
//
// A transfer is issued when moment `brought` begins and runs beside the computes; the compute of the first use waits for it. The unit
// takes space from the beginning of moment `brought` to the end of moment `left`. What leaves at the end of a moment makes room for
// what is brought at the next one. Within one moment, the unit of the use itself is brought before those that are prefetched.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/op/op.h"

namespace foreshard {

struct ParameterUnit {
  std::string name = {};
  std::int64_t elements = 0;  // with its padding
  bool operator==(const ParameterUnit&) const = default;
};

struct UnitUse {
  int unit = 0;
  Phase phase = Phase::Forward;  // or Recompute, Backward
  bool operator==(const UnitUse&) const = default;
};

struct Stay {
  static constexpr int kBeforeStep = -1;  // as `brought`: on the device when the step begins, nothing is transferred
  int unit = 0;
  int brought = 0;
  int first_use = 0;
  int left = 0;  // released when this moment is done; the number of moments: still there when the step ends

  bool on_demand() const { return brought == first_use; }  // its first use waits for the whole transfer
  bool operator==(const Stay&) const = default;
};

// Memory of a unit's full size beside its parameters, from the beginning of one moment to the end of another.
struct UnitBuffer {
  enum class Kind : std::uint8_t {
    Staging,        // the output of a gather after it was copied into the parameters
    Gradient,       // the whole gradient, before its reduction
    ReductionInput  // a copy of the whole gradient, in the format of the reduction
  };
  int unit = 0;
  Kind kind = Kind::Gradient;
  int from = 0, until = 0;
  bool operator==(const UnitBuffer&) const = default;
};

struct Residency {
  std::vector<int> persistent = {};  // units that are never cut or sent away: they have no stay, and no curve below counts them
  std::vector<Stay> stays = {};      // by `brought`, in the order in which transfers are issued
  std::vector<UnitBuffer> buffers = {};
  bool operator==(const Residency&) const = default;
};

// ---- the order of uses ----

struct UnitRange {
  int first = 0, last = 0;  // both included
};
// Forward of unit 0, 1, ..., then backward in reverse. The units of a range in `recomputed` (activation checkpointing; ranges in order,
// not overlapping) run their forward once more, in order, before the first backward of the range.
std::vector<UnitUse> step_order(int units, const std::vector<UnitRange>& recomputed = {});

// ---- what a residency takes ----

using ElementCurve = std::vector<std::int64_t>;  // one number for each moment

ElementCurve resident_elements(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                               const Residency& residency);
std::int64_t peak_elements(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                           const Residency& residency);
// Gathered, or copied to the device, in one step.
std::int64_t brought_elements(const std::vector<ParameterUnit>& units, const Residency& residency);

// Bytes of one element.
struct ElementBytes {
  std::int64_t parameter = 2, gradient = 2, reduction_input = 4;
};
// Stays and buffers together, at each moment.
std::vector<Bytes> resident_bytes(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                                  const Residency& residency, const ElementBytes& element = {});
Bytes peak_bytes(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses, const Residency& residency,
                 const ElementBytes& element = {});

// [moment]: the index of the stay that its use falls into; -1: the unit is persistent, or no stay covers the use. With it, lowering can walk the
// moments: it issues the transfers of the stays that are brought there, in the order of `stays`; lets the compute wait for its stay's
// transfer if this is the stay's first use; and releases the stay if this is where it is left.
std::vector<int> stays_of_uses(const std::vector<UnitUse>& uses, const Residency& residency);

// "" or the first thing that is wrong: a use outside of every stay, stays of one unit that overlap, a first use that is none, stays that
// are not in the order of their transfers, moments outside of the step. Every planner's result passes.
std::string residency_fault(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                            const Residency& residency);

}  // namespace foreshard
