// Compiles the kernels for the GPU; kernel_function returns them by number.
#include "exec/cuda/kernels/all.h"
#include "exec/cuda/module/kernels.h"

namespace foreshard::gpu {

const void* kernel_function(KernelId id) {
  switch (id) {
#define KERNEL(name, args) \
  case KernelId::name: return reinterpret_cast<const void*>(&name);
    FORESHARD_KERNELS(KERNEL)
#undef KERNEL
  }
  return nullptr;
}

}  // namespace foreshard::gpu
