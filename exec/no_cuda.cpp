// Replaces exec/cuda/load_cuda.cpp in builds without CUDA.
#include "core/base/error.h"
#include "exec/cuda/load_cuda.h"

namespace foreshard {

static DeviceError without_cuda() {
  return {"--device cuda", "this foreshard was built without CUDA (cmake -DFORESHARD_CUDA=ON says what is missing)"};
}

std::unique_ptr<gpu::Runtime> load_cuda() { throw without_cuda(); }
KernelBuild kernel_build() { throw without_cuda(); }

}  // namespace foreshard
