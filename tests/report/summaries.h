// Summaries made up for the tests of what is printed.
#pragma once

#include <string>
#include <vector>

#include "core/result/summary.h"

namespace foreshard::summaries {

// 1024 GPUs, `stages` pipeline ranks with one stage each; every number differs from every other where it matters.
Summary typical(int stages);

// Keys that docs/json-output.md promises of every simulation.
inline std::vector<std::string> promised_keys() {
  return {"strategy",
          "feasible",
          "infeasible_reason",
          "iteration_time_s",
          "tokens_per_s",
          "tokens_per_s_per_gpu",
          "model_flops_utilization",
          "hardware_flops_utilization",
          "flops",
          "bubble_fraction",
          "bubble_by_cause",
          "bubble_per_stage",
          "exposed_communication_fraction",
          "stage_times",
          "peak_memory_bytes",
          "static_bytes",
          "fits_margin_bytes",
          "memory_by_category",
          "link_utilization",
          "cost_per_million_tokens",
          "energy_per_million_tokens_j",
          "simulation"};
}

}  // namespace foreshard::summaries
