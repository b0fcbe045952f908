// Cases that compare GPU kernels with the host: each runs one instruction with random operands on both. `foreshard selftest` runs them on a
// GPU, the tests run them in the emulator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/cuda/runtime.h"
#include "exec/cuda/stored_array.h"
#include "exec/host/host_ops.h"

namespace foreshard::gpu {

struct KernelCase {
  std::string name = {};
  Compute what = {};
  std::vector<StoredArray> reads = {}, writes = {};
  OpArguments arguments = {};
  double tolerance = 0;  // largest accepted Outcome::error
};
// All cases. They are small, with all kinds of odd sizes; `large` adds cases with the sizes of real training.
std::vector<KernelCase> kernel_cases(bool large = false);

struct Outcome {
  double error = 0;           // the largest relative error of an output
  std::string fault = {};     // the message of an error that was thrown; empty: none
  bool borders_whole = true;  // the bytes before and after each operand were not changed
  template <class Case>
  bool right(const Case& of) const {
    return fault.empty() && error <= of.tolerance && borders_whole;
  }
};
// A case of kernel fusion (fuse_forward, fuse_backward in exec/cuda_ops/gpu_kernel.h): a product and the activation after it; or, in the
// backward, the gradient of a product's input, the backward of the activation before it, and the weight gradient whose bias gradient is
// fused. Operands are indices in `arrays`.
struct FusedCase {
  struct Part {
    Compute what = {};
    std::vector<std::size_t> reads = {}, writes = {};
  };
  std::string name = {};
  std::vector<Part> parts = {};
  std::vector<StoredArray> arrays = {};
  // the array that only passes data between two parts; the fused kernel does not write it
  std::optional<std::size_t> unwritten = {};
  double tolerance = 0;
};
std::vector<FusedCase> fused_cases(bool large = false);
// Runs a case on the GPU and on the host. Nothing: the library does not support the fusion.
std::optional<Outcome> run_case(const FusedCase& tried, Runtime& runtime);

// What runs the instruction of a case. Libraries: cuDNN and epilogues of cuBLASLt where they support the instruction. LibrariesInAnyOrder:
// the same, but they may add up gradients of attention in any order. OurKernels: our own kernels and plain products.
enum class By : std::uint8_t { Libraries, LibrariesInAnyOrder, OurKernels };
Outcome run_case(const KernelCase& tried, Runtime& runtime, By by = By::Libraries);

}  // namespace foreshard::gpu
