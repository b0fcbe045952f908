// calibrate: measures the costs of one device, as the executor runs it, and returns them as a machine profile. On the host, times are CPU
// time of the working thread; only all-reduces are measured in wall-clock time.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/profile/machine_profile.h"
#include "exec/device/device_measures.h"

namespace foreshard {

struct CalibrateOptions {
  std::string device = "host";  // MachineProfile::device
  int steps = 5;                // runs of each probe plan; the result is the median of all runs but the first
  std::vector<DType> dtypes = {DType::F32, DType::BF16, DType::F64};  // number formats in which matrix products are measured
  // Range of their dimensions: powers of two from least_product on
  std::int64_t least_product = 16, largest_product = 1024;
  std::function<void(double fraction)> progress = {};  // called with the finished fraction, 0 to 1
  const std::atomic<bool>* cancel = nullptr;           // becomes true when the caller cancels
  DeviceMeasures* measures = nullptr;                  // measures another device; null: the host
  // Called with what was measured when the device fails, before the DeviceError is thrown; not before links were measured.
  std::function<void(const MachineProfile&)> keep = {};
};

// Measures matrix products by shape and number format, copies and all-reduces by size, the launch overhead of an instruction, and every op
// of the probes (plans that contain the ops to measure). On the host it executes the probes, so that caches are as cold as in a run; on a
// GPU it runs each op by itself. A probe that fails is left out and told in `notes`; when one fails right after another, the device does not go
// on, and its DeviceError is thrown, as one of any other measurement is. Returns nothing if it was cancelled. Throws Error for a probe that
// cannot be run here.
std::optional<MachineProfile> calibrate(const std::vector<Plan>& probes, const CalibrateOptions& options = {},
                                        std::vector<std::string>* notes = nullptr);

// Processor, number of cores and matrix library, in words: MachineProfile::machine of the host.
std::string machine_words();
Bytes physical_memory();  // of this machine

}  // namespace foreshard
