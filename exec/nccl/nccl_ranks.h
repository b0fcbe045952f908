// ExecuteOptions::devices for GPUs that meet by NCCL.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "exec/cuda/gpu_ranks.h"
#include "exec/cuda/runtime.h"
#include "exec/interpreter/rank_devices.h"
#include "exec/mesh/process_mesh.h"
#include "exec/nccl/nccl.h"

namespace foreshard::gpu {

struct NcclOptions {
  int ranks = 1;                            // of the plan
  ProcessMesh* mesh = nullptr;              // none: all ranks are threads here
  int first_gpu = 0;                        // of the first rank of this process; the others follow, round and round
  std::chrono::milliseconds meet{300'000};  // for all to be connected
  bool shares_gpus = false;                 // several ranks on one GPU
  GpuRuns runs = {};                        // graphs: of what lies between the calls of NCCL, which are in none
};

// Whether NCCL lets ranks share a GPU: since 2.30.3, as an experiment, when NCCL_MULTI_RANK_GPU_ENABLE (`variable`) is 1.
bool shares_gpus(const nccl::Library& library, const char* variable);

// Runtime, library and mesh must outlive the runs.
std::function<std::unique_ptr<RankDevices>(const Stop& stop)> ranks_by_nccl(Runtime& runtime, nccl::Library& library,
                                                                            NcclOptions options);

}  // namespace foreshard::gpu
