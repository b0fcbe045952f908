// One instruction per case, with operands drawn by a seed, run by the kernels of the GPU (in the emulator) and by the host.
#pragma once

#include <string>
#include <vector>

#include "exec/cuda/emulator/emulator.h"
#include "exec/host_ops.h"
#include "tests/exec/host_arrays.h"

namespace foreshard::gpu {

struct KernelCase {
  std::string name = {};
  Compute what = {};
  std::vector<foreshard::Array> reads = {}, writes = {};
  OpArguments arguments = {};
  double tolerance = 0;
};
std::vector<KernelCase> kernel_cases();

struct Outcome {
  double error = 0;  // the largest relative error of an output
  std::string fault = {};
  bool borders_whole = true;  // nobody wrote beside an operand
  int conflicts = 0;
  int views = 0;  // arrays that the kernels were given
  bool right(const KernelCase& of) const { return fault.empty() && error <= of.tolerance && borders_whole && conflicts == 0; }
};
// `shifted`: this array of all that kernels are given begins one element late.
Outcome run_case(const KernelCase& tried, const emulator::Settings& settings, int shifted = -1);

}  // namespace foreshard::gpu
