#include "exec/cuda/load_cuda.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/open_module.h"

namespace foreshard {

static constexpr const char* kOperation = "--device cuda";
static constexpr const char* kHowToBuild = "; cmake --preset release && cmake --build build/release makes it";

KernelBuild kernel_build() {
  const auto entry =
      reinterpret_cast<gpu::KernelsEntry>(module_symbol(kOperation, "foreshard_cuda", gpu::kKernelsEntry, kHowToBuild));
  const std::string told = entry();
  const std::size_t border = std::min(told.find('|'), told.size());
  return {told.substr(0, border), told.substr(std::min(border + 1, told.size()))};
}

std::unique_ptr<gpu::Runtime> load_cuda() {
  // CUDA streams share hardware queues (connections). A task that waits at the head of a queue blocks those after it, maybe the very one
  // that it waits for. CUDA reads this variable when it creates a context; 32 is the maximum, 8 the default.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const auto entry =
      reinterpret_cast<gpu::ModuleEntry>(module_symbol(kOperation, "foreshard_cuda", gpu::kModuleEntry, kHowToBuild));
  const char* why = "no reason";
  std::unique_ptr<gpu::Runtime> runtime(entry(gpu::kModuleVersion, &why));
  if (!runtime) throw DeviceError(kOperation, why);
  return runtime;
}

}  // namespace foreshard
