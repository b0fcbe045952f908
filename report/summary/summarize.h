// summarize: Result -> Summary. Knows neither the strategy engine nor the backend that made the result.
#pragma once

#include <vector>

#include "core/cluster/cluster.h"
#include "core/result/result.h"
#include "core/result/summary.h"

namespace foreshard {

struct Workload {                      // what the result is judged by; lower knows it, the plan carries it in `origin`
  std::int64_t tokens_per_sample = 0;  // 0: samples are counted instead
  Flops model_flops_per_sample = {};
  std::int64_t parameters = 0;
};

// Linear in spans; a Result without spans gives what the plan alone says: memory and whether it fits. `order_bounds` of the plan
// (core/result/order_bound.h), which take longer than all the rest, become StageMemory::order_bound; empty: not asked for.
Summary summarize(const Result& result, const Cluster& cluster, const Workload& workload,
                  const std::vector<Bytes>& order_bounds = {});

}  // namespace foreshard
