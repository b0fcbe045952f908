// The measurements of `calibrate --device cuda`, timed with CUDA events.
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

// A measured copy between host memory and GPU 0; not part of a machine profile.
struct HostCopy {
  bool pinned = true, to_device = true;
  Bytes bytes = {};
  Seconds time = {};
};

// Sizes of some measurements. collective_share runs products (some ten microseconds each on a large GPU) and sums (some hundred
// microseconds) at the same time.
struct MeasureSizes {
  // Rows, columns and depth of the product; elements of the sum; both in bf16.
  std::int64_t product = 2048, sum = std::int64_t{32} << 20U;
  std::int64_t reduced = std::int64_t{16} << 20U;  // bytes of the largest all-reduce
  int times = 7;                                   // repetitions of every measurement; the first does not count
  std::chrono::milliseconds lasting{20};           // an instruction or product that takes longer is timed only once
};
MeasureSizes sizes_for(Bytes memory);  // smaller sizes for a GPU with little memory

class CudaMeasures : public DeviceMeasures {
 public:
  explicit CudaMeasures(Runtime& runtime) : CudaMeasures(runtime, sizes_for(runtime.properties(0).memory)) {}
  // Products are measured with the same algorithms as in runs; `products`: the file of ProductChoice.
  CudaMeasures(Runtime& runtime, MeasureSizes sizes, const std::string& products = "")
      : runtime_(runtime), sizes_(sizes), choice_(runtime, products) {}
  void products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                const std::function<void(const Compute&, Seconds)>& tell) override;
  // Measures each kind and size of compute once, over all calls: by itself, with cold and with warm caches; and each product with its GELU
  // as epilogue if the library supports it. Instructions whose operands do not fit into memory are left out.
  void instructions(const Plan& plan, int steps, const TellCompute& tell) override;
  Seconds start() override;
  std::vector<ProfileTransfer> copies() override;
  std::vector<ProfileTransfer> all_reduces() override;
  double collective_share() override;
  Bytes outside_memory() override;
  std::string machine() override;
  std::vector<std::string> notes() const override { return notes_; }
  std::vector<HostCopy> host_copies();

 private:
  bool is_new(const Compute& what, bool joined);  // whether `instructions` has not measured it before

  Runtime& runtime_;
  MeasureSizes sizes_;
  ProductChoice choice_;
  std::vector<std::string> notes_ = {};  // instructions that are not measured, and why
  std::set<std::tuple<std::string, Phase, DType, std::string, bool, std::vector<std::int64_t>, Bytes>> known_ =
      {};  // kinds and sizes that `instructions` has measured
};

}  // namespace foreshard::gpu
