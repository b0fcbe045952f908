// `selftest --nccl`: runs every collective and messages with NCCL between the GPUs of this machine, and compares the results with those
// computed on the host.
#pragma once

#include <string>
#include <vector>

#include "exec/nccl/nccl_ranks.h"

namespace foreshard::gpu {

struct NcclOutcome {
  std::string name = {};  // "all_reduce bf16, mean, 3000 elements"
  double error = 0;       // the largest relative error of an element
  double tolerance = 0;
  std::string fault = {};  // a call that failed or hung; then this is the last outcome
  bool right() const { return fault.empty() && error <= tolerance; }
};

// Runs them with options.ranks ranks, which are threads of this process. `patience`: after this time, a collective counts as hung. Throws
// DeviceError if the ranks cannot connect.
std::vector<NcclOutcome> nccl_outcomes(Runtime& runtime, nccl::Library& library, const NcclOptions& options,
                                       std::chrono::milliseconds patience = std::chrono::seconds(300));

}  // namespace foreshard::gpu
