// summarize: Result -> Summary. It needs neither the strategy engine nor the backend that made the result.
#pragma once

#include <vector>

#include "core/cluster/cluster.h"
#include "core/result/result.h"
#include "core/result/summary.h"

namespace foreshard {

struct Workload {  // turns times into throughput and MFU; `lower` computes it, the plan stores it in `origin`
  std::int64_t tokens_per_sample = 0;  // 0: throughput is in samples
  Flops model_flops_per_sample = {};
  Flops masked_flops_per_sample = {};  // attention only where the masks allow it; 0: unknown
  std::int64_t parameters = 0;
};

// Takes time linear in the spans. For a Result without spans the summary has only memory and whether the plan fits.
// `order_bounds` ([role], core/result/order_bound.h) become StageMemory::order_bound; empty: unknown. They are a parameter
// because computing them takes longer than all of the summary.
Summary summarize(const Result& result, const Cluster& cluster, const Workload& workload,
                  const std::vector<Bytes>& order_bounds = {});

}  // namespace foreshard
