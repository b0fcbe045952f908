// The measurements of `calibrate --device cuda`, by events of the GPU.
#pragma once

#include "exec/cuda/runtime.h"
#include "exec/device/device_measures.h"

namespace foreshard::gpu {

// Between host and GPU 0; not part of a profile.
struct HostCopy {
  bool pinned = true, to_device = true;
  Bytes bytes = {};
  Seconds time = {};
};

// Of the computes that are slowed by sums beside them: some ten microseconds each on a large GPU, the sums some hundred.
struct SlowDownSizes {
  std::int64_t product = 2048, sum = std::int64_t{32} << 20U;  // rows, columns and depth; elements; all in bf16
};

class CudaMeasures : public DeviceMeasures {
 public:
  explicit CudaMeasures(Runtime& runtime, SlowDownSizes sizes = {}) : runtime_(runtime), sizes_(sizes) {}
  void products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                const std::function<void(const Compute&, Seconds)>& tell) override;
  Seconds start() override;
  std::vector<ProfileTransfer> copies() override;
  std::vector<ProfileTransfer> all_reduces() override;
  double collective_share() override;
  Bytes outside_memory() override;
  std::string machine() override;
  std::vector<HostCopy> host_copies();

 private:
  Runtime& runtime_;
  SlowDownSizes sizes_;
};

}  // namespace foreshard::gpu
