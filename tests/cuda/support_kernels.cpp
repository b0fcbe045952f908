#include "exec/cuda/kernels/all.h"
#include "tests/cuda/emulated_kernels.h"

namespace foreshard::gpu {

void run_emulated(KernelId kernel, const emulator::Grid& grid, int threads, const void* args,
                  const emulator::Settings& settings) {
  switch (kernel) {
#define KERNEL(name, Args) \
  case KernelId::name:     \
    return emulator::run(  \
        grid, threads, [](const void* given) { name(*static_cast<const Args*>(given)); }, args, settings);
    FORESHARD_KERNELS(KERNEL)
#undef KERNEL
  }
}

}  // namespace foreshard::gpu
