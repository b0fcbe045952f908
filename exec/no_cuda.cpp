// Replaces exec/cuda/load_cuda.cpp in builds without CUDA.
#include "core/base/error.h"
#include "exec/cuda/load_cuda.h"

namespace foreshard {

std::unique_ptr<gpu::Runtime> load_cuda() {
  throw DeviceError("--device cuda", "this foreshard was built without CUDA (cmake -DFORESHARD_CUDA=ON says what is missing)");
}

}  // namespace foreshard
