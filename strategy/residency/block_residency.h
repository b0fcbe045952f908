// Residency of blocks that come and go one by one: FSDP2 (pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py), the
// blocks of BMTrain at levels 2 and 3 (OpenBMB/BMTrain, bmtrain/block_layer.py), L2L (Pudipeddi et al. 2020, arXiv 2002.05645), and the two
// ends: every unit gathered once and kept, or gathered for each pass and released at once.
#pragma once

#include "strategy/residency/residency.h"

namespace foreshard {

// How long gradients of a unit's full size are there.
enum class FullGradient : std::uint8_t {
  None,        // not modelled here: summed where they are made
  OfUse,       // during the backward of the unit
  WithGather,  // from the moment at which the parameters are gathered, or would be if they had not been kept, to their release
};

struct BlockRule {
  int ahead_forward = 0;            // units gathered beside the forward of the one before; 0: on demand
  int ahead_backward = 0;           // the same in the backward; recomputation belongs to it
  bool keep_after_forward = false;  // until the backward is done, instead of a second gather
  // A gather's output lives on beside the parameters until the next unit's gather is copied out.
  bool staging_in_forward = false;
  FullGradient gradient = FullGradient::None;
  // The input of a unit's reduction lives during the backward of the next one. Behind the last unit it is not counted.
  bool reduction_in_flight = false;
};

// Uses of one unit that follow one another, in the forward or in the backward, are one visit with one stay. A unit is never gathered in
// the forward for its backward. Several micro-batches: their uses one after the other; a kept unit goes when its backward is done.
Residency block_residency(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses, const BlockRule& rule);

}  // namespace foreshard
