// Residency: which units of parameters are on the device, as a whole, at which moments of a training step. A planner of this folder
// computes it from the units and the order of their uses; lower() emits the gathers, copies and releases that it asks for. It contains no
// times, only an order; sizes are numbers of elements.
//
//   unit     parameters that are gathered over ranks, or copied from host memory, together: a module, a block, a bucket, a chunk
//   use      the forward, the recomputation or the backward of one unit
//   moment   the index of a use in the order of the step: 0, 1, ...
//   stay     the interval from the start of a unit's gather (or of its copy to the device) to its release
//
//   moment       0          1          2          3          4          5
//   use          forward a  forward b  forward c  backward c backward b backward a
//   stays of b   [=====================]          [=====================]
//                brought 0, first use 1, until 1  brought 3, first use 4, until 4
//
// A transfer is issued at the beginning of moment `brought` and overlaps the computes; the compute of the first use waits for it. The unit
// takes memory from the beginning of moment `brought` to the end of moment `released_after`. A unit that is released at the end of a moment makes
// room for units brought at the next one. Within a moment, the transfer of the unit in use comes before those of prefetched units.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/op/op.h"

namespace foreshard {

struct ParameterUnit {
  std::string name = {};
  std::int64_t elements = 0;  // padding included
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
  int brought = 0;         // moment at which its transfer is issued
  int first_use = 0;       // moment
  int released_after = 0;  // released at the end of this moment; the number of moments: stays on the device when the step ends

  bool on_demand() const { return brought == first_use; }  // its first use waits for the whole transfer
  bool operator==(const Stay&) const = default;
};

// A buffer of a unit's full size beside its parameters, from the beginning of moment `from` to the end of moment `until`.
struct UnitBuffer {
  enum class Kind : std::uint8_t {
    Staging,        // the buffer that a gather wrote, after its contents were copied into the parameters
    Gradient,       // the whole gradient, before its reduction
    ReductionInput  // a copy of the whole gradient, in the format of the reduction
  };
  int unit = 0;
  Kind kind = Kind::Gradient;
  int from = 0, until = 0;
  bool operator==(const UnitBuffer&) const = default;
};

struct Residency {
  // Units that are never sharded or offloaded; they have no stay, and the curves below omit them.
  std::vector<int> persistent = {};
  std::vector<Stay> stays = {};  // in the order in which transfers are issued, so `brought` ascends
  std::vector<UnitBuffer> buffers = {};
  bool operator==(const Residency&) const = default;
};

// ---- the order of uses ----

struct UnitRange {
  int first = 0, last = 0;  // both included
};
// The uses of a step: the forward of units 0, 1, ..., then their backward in reverse order. Units in a range of `recomputed` (activation
// checkpointing; ranges ascending, not overlapping) run their forward once more, in order, before the first backward of the range.
std::vector<UnitUse> step_order(int units, const std::vector<UnitRange>& recomputed = {});

// ---- the memory of a residency ----

using ElementCurve = std::vector<std::int64_t>;  // [moment]: a number of elements

// Elements of the units on the device, without persistent units and buffers; and their peak.
ElementCurve resident_elements(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                               const Residency& residency);
std::int64_t peak_elements(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                           const Residency& residency);
// Elements that are gathered, or copied to the device, in one step.
std::int64_t brought_elements(const std::vector<ParameterUnit>& units, const Residency& residency);

// Bytes of one element.
struct ElementBytes {
  std::int64_t parameter = 2, gradient = 2, reduction_input = 4;
};
// [moment]: bytes of stays and buffers together; and their peak.
std::vector<Bytes> resident_bytes(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                                  const Residency& residency, const ElementBytes& element = {});
Bytes peak_bytes(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses, const Residency& residency,
                 const ElementBytes& element = {});

// [moment]: the index of the stay that covers its use; -1: the unit is persistent, or no stay covers the use. To emit the instructions of a
// residency, go through the moments: issue the transfers of the stays brought at this moment, in the order of `stays`; let the compute wait
// for the transfer if this is its stay's first use; release the stay if this is its `released_after`.
std::vector<int> stays_of_uses(const std::vector<UnitUse>& uses, const Residency& residency);

// The first fault of a residency, as a message; "": it has none. Faults: a use that no stay covers, overlapping stays of one unit, a
// `first_use` at which the unit is not used, stays that are not in the order of their transfers, moments outside the step. The planners'
// results have none.
std::string residency_fault(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                            const Residency& residency);

}  // namespace foreshard
