// Ranks on GPUs that communicate with NCCL: the value of ExecuteOptions::devices (exec/interpreter/execute.h).
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
  int ranks = 1;                // number of ranks of the plan
  ProcessMesh* mesh = nullptr;  // null: all ranks are threads of this process
  // GPU of the first rank of this process; the next ranks have the next GPUs, modulo their number
  int first_gpu = 0;
  std::chrono::milliseconds meet{300'000};  // how long to wait for all ranks when communicators are created
  bool shares_gpus = false;                 // several ranks may be on one GPU
  GpuRuns runs = {};                        // with `graphs`, NCCL calls are not part of a graph
};

// Whether NCCL allows ranks to share a GPU: since version 2.30.3, as an experimental feature, if `variable` (the value of
// NCCL_MULTI_RANK_GPU_ENABLE) is "1".
bool shares_gpus(const nccl::Library& library, const char* variable);

// The factory of such ranks. Runtime, library and mesh must outlive the runs.
std::function<std::unique_ptr<RankDevices>(const Stop& stop)> ranks_by_nccl(Runtime& runtime, nccl::Library& library,
                                                                            NcclOptions options);

}  // namespace foreshard::gpu
