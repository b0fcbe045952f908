#pragma once

#include "exec/cuda/kernel_list.h"

namespace foreshard::gpu {

// What cudaLaunchKernel takes.
const void* kernel_function(KernelId id);

}  // namespace foreshard::gpu
