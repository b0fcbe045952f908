// The ranks of `calibrate --collectives --device cuda`: GPUs that meet by NCCL, as those of a run do.
#pragma once

#include <memory>

#include "exec/calibrate/calibrate_collectives.h"
#include "exec/nccl/nccl_ranks.h"

namespace foreshard::gpu {

// What NCCL_ALGO says, where it is one of its algorithms and no more; else what NCCL chooses. `text`: null: not set.
MeasuredAlgorithm algorithm_of(const char* text);

// options.ranks is those of all processes, `here` those of this one. Runtime, library and mesh must outlive them. Throws DeviceError.
std::unique_ptr<CollectiveRanks> nccl_collective_ranks(Runtime& runtime, nccl::Library& library, const NcclOptions& options,
                                                       std::vector<RankId> here, Bytes largest, MeasuredAlgorithm algorithm);

// Of the rank whose GPU this is.
RankSeat seat_of(Runtime& runtime, int gpu, const std::string& node);

}  // namespace foreshard::gpu
