// Opens the CUDA module (libforeshard_cuda.so) at run time. In a build without CUDA, exec/no_cuda.cpp implements load_cuda and says what is
// missing.
#pragma once

#include <memory>
#include <sstream>
#include <string>

#include "exec/cuda/runtime.h"

namespace foreshard {

// Opens the module and returns its runtime. Throws DeviceError that says what is missing: the module, one of its libraries, the driver, or
// a GPU. The module stays open until the program ends.
std::unique_ptr<gpu::Runtime> load_cuda();

// How the kernels of the module were compiled.
struct KernelBuild {
  std::string architectures = {};  // compute capabilities times ten: "80 90"
  std::string options = {};        // of nvcc: "-O3"
  // Whether none of the options takes optimizations back.
  bool optimized() const;
};
// Opens the module, for which it needs neither a driver nor a GPU. Throws DeviceError as load_cuda.
KernelBuild kernel_build();

inline bool KernelBuild::optimized() const {
  std::istringstream words(options);
  for (std::string word; words >> word;)
    for (const char* less : {"-O0", "-O1", "-O2", "-G", "--device-debug"})
      if (word.ends_with(less)) return false;
  return true;
}

namespace gpu {
// The entry point of the module: returns a runtime, or null and sets *why. `version`: kModuleVersion of the caller; the module refuses
// another one, because the interface (runtime.h and what it includes) may differ.
inline constexpr int kModuleVersion = 7;
inline constexpr const char* kModuleEntry = "foreshard_cuda_runtime";
using ModuleEntry = Runtime* (*)(int version, const char** why);
// And one that returns "architectures|options" of KernelBuild.
inline constexpr const char* kKernelsEntry = "foreshard_cuda_kernels";
using KernelsEntry = const char* (*)();
}  // namespace gpu

}  // namespace foreshard
