#include "exec/cuda/load_cuda.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/base/open_module.h"

namespace foreshard {

std::unique_ptr<gpu::Runtime> load_cuda() {
  constexpr const char* kOperation = "--device cuda";
  // CUDA streams share hardware queues (connections). A task that waits at the head of a queue blocks those after it, maybe the very one
  // that it waits for. CUDA reads this variable when it creates a context; 32 is the maximum, 8 the default.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const auto entry = reinterpret_cast<gpu::ModuleEntry>(module_symbol(kOperation, "foreshard_cuda", gpu::kModuleEntry));
  const char* why = "no reason";
  std::unique_ptr<gpu::Runtime> runtime(entry(gpu::kModuleVersion, &why));
  if (!runtime) throw DeviceError(kOperation, why);
  return runtime;
}

}  // namespace foreshard
