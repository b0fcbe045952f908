// ExecuteOptions::devices for GPUs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "exec/cuda/runtime.h"
#include "exec/interpreter/rank_devices.h"

namespace foreshard::gpu {

struct GpuRuns {
  bool graphs = false;  // what a stream does between two events is one CUDA graph from the third run on
  // Steps of earlier runs tell when they have ended, but not their times: of each such run only its begin is timed. So a training pays for the
  // timing of instructions in the run whose trace is asked for. What a run without times tells is when the host heard of it.
  int timed_from = 0;
  bool fuse = true;           // a product does the work of instructions behind it, where it can: they are told as one span
  bool any_order = false;     // gradients of attention may be added up in any order: faster, with other bits in every run
  std::string products = {};  // the file of ProductChoice; empty: the library chooses algorithms of products
};

// $FORESHARD_PRODUCTS, else foreshard/products.json in $XDG_CACHE_HOME or ~/.cache; empty: none, so said by FORESHARD_PRODUCTS=off.
std::string product_file_path();

// Ranks on the GPUs that a runtime has, rank r on GPU r modulo their number. The runtime must outlive the runs.
std::function<std::unique_ptr<RankDevices>(const Stop& stop)> ranks_on(Runtime& runtime, GpuRuns runs = {});

}  // namespace foreshard::gpu
