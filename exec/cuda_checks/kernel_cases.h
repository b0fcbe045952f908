// One instruction per case, with operands drawn by a seed, run by the kernels of a GPU and by the host: what `foreshard selftest` does,
// and the tests do in the emulator.
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
  double tolerance = 0;
};
// `large`: of sizes as in a training, beside the small ones with every odd border.
std::vector<KernelCase> kernel_cases(bool large = false);

struct Outcome {
  double error = 0;  // the largest relative error of an output
  std::string fault = {};
  bool borders_whole = true;  // the bytes around each operand are untouched
  template <class Case>
  bool right(const Case& of) const {
    return fault.empty() && error <= of.tolerance && borders_whole;
  }
};
// Instructions that one product does: a product and the activation behind it, or, backward, in front of it, and then the gradient of the weights whose
// bias gradient is made with it. Operands are numbers of arrays.
struct FusedCase {
  struct Part {
    Compute what = {};
    std::vector<std::size_t> reads = {}, writes = {};
  };
  std::string name = {};
  std::vector<Part> parts = {};
  std::vector<StoredArray> arrays = {};
  std::optional<std::size_t> unwritten = {};  // between two parts, and nowhere else
  double tolerance = 0;
};
std::vector<FusedCase> fused_cases(bool large = false);
// None: the library does not have it.
std::optional<Outcome> run_case(const FusedCase& tried, Runtime& runtime);

// Who does what libraries have beside products.
enum class By : std::uint8_t { Libraries, LibrariesInAnyOrder, OurKernels };
Outcome run_case(const KernelCase& tried, Runtime& runtime, By by = By::Libraries);

}  // namespace foreshard::gpu
