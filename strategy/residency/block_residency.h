// Residency of blocks (units of parameters) that are gathered and released one by one, in the order of their uses. With the right BlockRule
// this is FSDP2 (pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py), the blocks of BMTrain at ZeRO levels 2 and 3
// (OpenBMB/BMTrain, bmtrain/block_layer.py) or L2L (Pudipeddi et al. 2020, arXiv 2002.05645); and the two extremes, every unit gathered
// once and kept, or gathered for each pass and released at once.
#pragma once

#include "strategy/residency/residency.h"

namespace foreshard {

// How long the whole (unsharded) gradients of a unit take memory.
enum class FullGradient : std::uint8_t {
  None,        // not counted by this model
  OfUse,       // during the backward of the unit
  WithGather,  // from the gather of the parameters for the backward (or when it would be, if they are kept) to their release
};

struct BlockRule {
  int ahead_forward = 0;            // prefetch: how many units before its own forward a unit's gather is issued; 0: on demand
  int ahead_backward = 0;           // the same in the backward, which includes recomputation
  bool keep_after_forward = false;  // a unit stays from its forward to the end of its backward, instead of a second gather
  // In the forward, the buffer that a gather writes stays allocated beside the parameters that are copied out of it, until the unit's
  // forward ends.
  bool staging_in_forward = false;
  FullGradient gradient = FullGradient::None;
  // The input of a unit's gradient reduction stays allocated during the backward of the next unit. After the last unit it is not counted.
  bool reduction_in_flight = false;
};

// The residency under this rule. Consecutive uses of a unit in the forward, or in the backward, share one stay. Nothing is prefetched
// across the turn from forward to backward. The uses of several micro-batches follow one another; a unit that is kept is released at the
// end of its backward.
Residency block_residency(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses, const BlockRule& rule);

}  // namespace foreshard
