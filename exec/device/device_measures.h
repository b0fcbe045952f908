// The single measurements of `calibrate` on a device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/profile/machine_profile.h"

namespace foreshard {

// Takes the time of a compute; of a `joined` one together with its GELU (ProfileOp::joined).
using TellCompute = std::function<void(const Compute&, Seconds, bool joined)>;

class DeviceMeasures {
 public:
  virtual ~DeviceMeasures() = default;
  // y = x w^T of `rows` rows, for all columns and depths of `sizes`, and the products of its gradients.
  virtual void products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                        const std::function<void(const Compute&, Seconds)>& tell) = 0;
  // The computes of a plan, each as often as it is measured. `steps`: runs of the plan, where it runs; the first does not count.
  virtual void instructions(const Plan& plan, int steps, const TellCompute& tell) = 0;
  virtual Seconds start() = 0;                             // of an instruction that does next to nothing
  virtual std::vector<ProfileTransfer> copies() = 0;       // inside the device
  virtual std::vector<ProfileTransfer> all_reduces() = 0;  // 2 ranks, fp32
  virtual double collective_share() { return 0; }          // of the compute units that a collective takes
  virtual Bytes outside_memory() { return {}; }            // of a device that holds nothing yet; 0: not measured
  virtual std::string machine() = 0;                       // device, driver, libraries, in words
};

}  // namespace foreshard
