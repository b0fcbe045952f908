// The measurements that `calibrate` (exec/calibrate/calibrate.h) combines into a machine profile, as each kind of device makes them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/profile/machine_profile.h"

namespace foreshard {

// Receives the measured time of one compute. `joined`: the time includes the GELU that runs in the same kernel (ProfileOp::joined).
using TellCompute = std::function<void(const Compute&, Seconds, bool joined)>;

class DeviceMeasures {
 public:
  virtual ~DeviceMeasures() = default;
  // Measures y = x w^T with x [rows, depth] and w [columns, depth], for every pair (columns, depth) from `sizes`, and the products that
  // make the gradients of x and w.
  virtual void products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                        const std::function<void(const Compute&, Seconds)>& tell) = 0;
  // Measures the computes of a plan, and calls `tell` once per measurement. `steps`: number of runs, for devices that measure by
  // executing the plan; the first run does not count.
  virtual void instructions(const Plan& plan, int steps, const TellCompute& tell) = 0;
  virtual Seconds start() = 0;                             // launch overhead: time of an instruction with almost no work
  virtual std::vector<ProfileTransfer> copies() = 0;       // inside the device, by size
  virtual std::vector<ProfileTransfer> all_reduces() = 0;  // of 2 ranks in fp32, by size
  virtual double collective_share() { return 0; }          // fraction of the compute units that a running collective occupies
  virtual Bytes outside_memory() { return {}; }            // memory that is taken before any allocation; 0: not measured
  virtual std::string machine() = 0;                       // names of device, driver and libraries, for display
  virtual std::vector<std::string> notes() const { return {}; }  // what was not measured, and why
};

}  // namespace foreshard
