// The kernels of the module, compiled for the emulator.
#pragma once

#include "exec/cuda/emulator/emulator.h"
#include "exec/cuda/kernel_list.h"

namespace foreshard::gpu {

void run_emulated(KernelId kernel, const emulator::Grid& grid, int threads, const void* args,
                  const emulator::Settings& settings);

}  // namespace foreshard::gpu
