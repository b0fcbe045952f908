// The measurements of `calibrate --device cuda`, by events of the GPU.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "exec/cuda/product_choice.h"
#include "exec/cuda/runtime.h"
#include "exec/device/device_measures.h"

namespace foreshard::gpu {

// Between host and GPU 0; not part of a profile.
struct HostCopy {
  bool pinned = true, to_device = true;
  Bytes bytes = {};
  Seconds time = {};
};

// What is measured beside each other: computes of some ten microseconds each on a large GPU, sums of some hundred that slow them, and the largest
// all-reduce. Less on a GPU with little memory.
struct MeasureSizes {
  std::int64_t product = 2048, sum = std::int64_t{32} << 20U;  // rows, columns and depth; elements; all in bf16
  std::int64_t reduced = std::int64_t{16} << 20U;              // bytes
  int times = 7;                                               // of every measurement; the first does not count
  std::chrono::milliseconds lasting{20};                       // instructions and products that take longer are timed once
};
MeasureSizes sizes_for(Bytes memory);

class CudaMeasures : public DeviceMeasures {
 public:
  explicit CudaMeasures(Runtime& runtime) : CudaMeasures(runtime, sizes_for(runtime.properties(0).memory)) {}
  // Products are measured with the algorithms of runs: `products` is the file of ProductChoice.
  CudaMeasures(Runtime& runtime, MeasureSizes sizes, const std::string& products = "")
      : runtime_(runtime), sizes_(sizes), choice_(runtime, products) {}
  void products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                const std::function<void(const Compute&, Seconds)>& tell) override;
  // Each kind and size once, whatever the plans: by itself, with caches that are cold and with warm ones; and products with their GELU where
  // the library has that. What does not fit is left out.
  void instructions(const Plan& plan, int steps, const TellCompute& tell) override;
  Seconds start() override;
  std::vector<ProfileTransfer> copies() override;
  std::vector<ProfileTransfer> all_reduces() override;
  double collective_share() override;
  Bytes outside_memory() override;
  std::string machine() override;
  std::vector<HostCopy> host_copies();

 private:
  bool is_new(const Compute& what, bool joined);

  Runtime& runtime_;
  MeasureSizes sizes_;
  ProductChoice choice_;
  std::set<std::tuple<std::string, Phase, DType, std::string, bool, std::vector<std::int64_t>, Bytes>> known_ =
      {};  // by `instructions`
};

}  // namespace foreshard::gpu
