// summarize: Result -> Summary. Knows neither the strategy engine nor the backend that made the result.
#pragma once

#include <string>

#include "core/cluster.h"
#include "core/result.h"
#include "core/summary.h"

namespace foreshard {

struct Workload {                      // what the result is judged by; lower knows it, the plan carries it in `origin`
  std::int64_t tokens_per_sample = 0;  // 0: samples are counted instead
  Flops model_flops_per_sample = {};
  std::int64_t parameters = 0;
};

Summary summarize(const Result& result, const Cluster& cluster, const Workload& workload);

}  // namespace foreshard
