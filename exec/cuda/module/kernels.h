// The CUDA kernels by number.
#pragma once

#include "exec/cuda/kernel_list.h"

namespace foreshard::gpu {

// The function pointer that cudaLaunchKernel takes.
const void* kernel_function(KernelId id);

}  // namespace foreshard::gpu
