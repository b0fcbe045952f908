// summarize: Result -> Summary. Knows neither the strategy engine nor the backend that made the result.
#pragma once

#include <string>

#include "core/cluster/cluster.h"
#include "core/result/result.h"
#include "core/result/summary.h"

namespace foreshard {

struct Workload {                      // what the result is judged by; lower knows it, the plan carries it in `origin`
  std::int64_t tokens_per_sample = 0;  // 0: samples are counted instead
  Flops model_flops_per_sample = {};
  std::int64_t parameters = 0;
};

struct SummarizeOptions {
  bool order_bounds = false;  // StageMemory::order_bound too: walks every instruction of every role, slower than all the rest
};

// Linear in spans; a Result without spans gives what the plan alone says: memory and whether it fits.
Summary summarize(const Result& result, const Cluster& cluster, const Workload& workload, const SummarizeOptions& options = {});

}  // namespace foreshard
