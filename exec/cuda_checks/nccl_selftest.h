// Every collective and messages by NCCL between the GPUs of this machine, against what the host makes of the same numbers: `selftest --nccl`.
#pragma once

#include <string>
#include <vector>

#include "exec/nccl/nccl_ranks.h"

namespace foreshard::gpu {

struct NcclOutcome {
  std::string name = {};  // "all_reduce bf16, mean, 3000 elements"
  double error = 0;       // the largest relative error of an element
  double tolerance = 0;
  std::string fault = {};  // a call that failed or did not come to an end: the last outcome then
  bool right() const { return fault.empty() && error <= tolerance; }
};

// A rank per GPU, but options.ranks of them; all threads of this process. Throws DeviceError when they do not meet. `patience`: with one collective.
std::vector<NcclOutcome> nccl_outcomes(Runtime& runtime, nccl::Library& library, const NcclOptions& options,
                                       std::chrono::milliseconds patience = std::chrono::seconds(300));

}  // namespace foreshard::gpu
