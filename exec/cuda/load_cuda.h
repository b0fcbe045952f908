// Opens the CUDA module (libforeshard_cuda.so) at run time. In a build without CUDA, exec/no_cuda.cpp implements load_cuda and says what is
// missing.
#pragma once

#include <memory>

#include "exec/cuda/runtime.h"

namespace foreshard {

// Opens the module and returns its runtime. Throws DeviceError that says what is missing: the module, one of its libraries, the driver, or
// a GPU. The module stays open until the program ends.
std::unique_ptr<gpu::Runtime> load_cuda();

namespace gpu {
// The entry point of the module: returns a runtime, or null and sets *why. `version`: kModuleVersion of the caller; the module refuses
// another one, because the interface (runtime.h and what it includes) may differ.
inline constexpr int kModuleVersion = 6;
inline constexpr const char* kModuleEntry = "foreshard_cuda_runtime";
using ModuleEntry = Runtime* (*)(int version, const char** why);
}  // namespace gpu

}  // namespace foreshard
