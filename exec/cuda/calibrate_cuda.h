// The measurements of `calibrate --device cuda`, by events of the GPU.
#pragma once

#include "exec/cuda/runtime.h"
#include "exec/device_measures.h"

namespace foreshard::gpu {

// Between host and GPU 0; not part of a profile.
struct HostCopy {
  bool pinned = true, to_device = true;
  Bytes bytes = {};
  Seconds time = {};
};

class CudaMeasures : public DeviceMeasures {
 public:
  explicit CudaMeasures(Runtime& runtime) : runtime_(runtime) {}
  void products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                const std::function<void(const Compute&, Seconds)>& tell) override;
  Seconds start() override;
  std::vector<ProfileTransfer> copies() override;
  std::vector<ProfileTransfer> all_reduces() override;
  std::string machine() override;
  std::vector<HostCopy> host_copies();

 private:
  Runtime& runtime_;
};

}  // namespace foreshard::gpu
