// The ranks of `calibrate --collectives --device cuda`: GPUs that communicate with NCCL, as in a run.
#pragma once

#include <memory>

#include "exec/calibrate/calibrate_collectives.h"
#include "exec/nccl/nccl_ranks.h"

namespace foreshard::gpu {

// The algorithm that NCCL_ALGO names, if it names exactly one; else Automatic: NCCL chooses. `text`: the value of NCCL_ALGO, null if it is
// not set.
MeasuredAlgorithm algorithm_of(const char* text);

// options.ranks: number of ranks of all processes; `here`: the ranks of this process; `largest`: bytes of the operands of a rank. Runtime,
// library and mesh must outlive the result. Throws DeviceError.
std::unique_ptr<CollectiveRanks> nccl_collective_ranks(Runtime& runtime, nccl::Library& library, const NcclOptions& options,
                                                       std::vector<RankId> here, Bytes largest, MeasuredAlgorithm algorithm);

// The location (exec/calibrate/calibrate_groups.h) of a rank on this GPU. `node`: this_node().
RankLocation location_of_gpu(Runtime& runtime, int gpu, const std::string& node);

}  // namespace foreshard::gpu
