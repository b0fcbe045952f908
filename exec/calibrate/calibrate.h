// calibrate: measures this host as the executor runs it. Every number is CPU time of the thread that worked, but for all-reduces,
// which are measured on the clock.
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
  int steps = 5;                // runs of every probe; the first does not count, of the others the median does
  std::vector<DType> dtypes = {DType::F32, DType::BF16, DType::F64};  // of the products measured by shape
  std::int64_t least_product = 16, largest_product = 1024;            // rows, columns and depth of the products
  std::function<void(double fraction)> progress = {};
  const std::atomic<bool>* cancel = nullptr;
  DeviceMeasures* measures = nullptr;  // of another device than the host
};

// Products by shape and number format, copies and all-reduces by size, the start of an instruction; and every op of the probes: on the host by
// executing them, so that caches are as cold as they are in a run, on a GPU each by itself. Nothing when it was cancelled.
// Throws Error for a probe that cannot be run here, DeviceError when one fails.
std::optional<MachineProfile> calibrate(const std::vector<Plan>& probes, const CalibrateOptions& options = {});

// What machine_profile says about the processor, the number of cores and the matrix library.
std::string machine_words();
Bytes physical_memory();

}  // namespace foreshard
