// Ranks on GPUs of one process: the value of ExecuteOptions::devices (exec/interpreter/execute.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "exec/cuda/runtime.h"
#include "exec/interpreter/rank_devices.h"

namespace foreshard::gpu {

struct GpuRuns {
  bool graphs = false;  // from the third run on, the steps of a stream between two events are launched as one CUDA graph
  // Runs from this one on are timed: each step reports when it began and ended on the GPU. Timing costs time, so a training times only the
  // runs whose trace is wanted. In earlier runs, a step's times are those at which the host noticed that it had begun and ended.
  int timed_from = 0;
  // Fuses matrix products with neighbouring instructions where possible (docs/cuda.md); they are reported as one span
  bool fuse = true;
  bool any_order = false;     // gradients of attention may be added up in any order: faster, but with other bits in every run
  std::string products = {};  // file of ProductChoice; empty: the library chooses the algorithms of matrix products
};

// The default file of ProductChoice: $FORESHARD_PRODUCTS, else foreshard/products.json in $XDG_CACHE_HOME or ~/.cache. Empty if
// FORESHARD_PRODUCTS=off.
std::string product_file_path();

// The factory of such ranks: rank r runs on GPU r modulo the number of GPUs of the runtime. The runtime must outlive the runs.
std::function<std::unique_ptr<RankDevices>(const Stop& stop)> ranks_on(Runtime& runtime, GpuRuns runs = {});

}  // namespace foreshard::gpu
