// ExecuteOptions::devices for GPUs.
#pragma once

#include <functional>
#include <memory>

#include "exec/cuda/runtime.h"
#include "exec/interpreter/rank_devices.h"

namespace foreshard::gpu {

// `graphs`: what a stream does between two events is one CUDA graph from the third run on.
// Ranks on the GPUs that a runtime has, rank r on GPU r modulo their number. The runtime must outlive the runs.
std::function<std::unique_ptr<RankDevices>(const Stop& stop)> ranks_on(Runtime& runtime, bool graphs = false);

}  // namespace foreshard::gpu
