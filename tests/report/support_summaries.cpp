#include "tests/report/summaries.h"

namespace foreshard::summaries {

static StageMemory memory_of(int stage, Bytes framework) {
  const std::int64_t gib = 1LL << 30;
  StageMemory row;
  row.role = "stage " + std::to_string(stage);
  const std::int64_t parameters = stage == 0 ? 4 : 3;
  row.peak = {Bytes{parameters * gib}, {parameters * gib}, {6 * parameters * gib}, {8 * gib}, {2 * gib}, {gib / 4}, {0}};
  for (const Bytes bytes : row.peak) row.live_peak += bytes;
  row.statics = {8 * parameters * gib};
  row.order_bound = row.live_peak + Bytes{gib / 4};
  row.arena = row.reserved = row.order_bound + Bytes{gib / 2};
  row.with_framework = row.arena + framework;
  return row;
}

Summary typical(int stages) {
  Summary s;
  s.iteration_time = {41.3187};
  s.tokens_per_s = 76132.3;
  s.tokens_per_s_per_gpu = 74.348;
  s.samples_per_s = 37.17;
  s.flops.model = {6.2e18};
  s.flops.hardware = {7.4e18};
  s.flops.model_utilization = 0.4312;
  s.flops.hardware_utilization = 0.5174;
  s.gpus = 1024;
  s.stages = stages;
  s.microbatches = 192;
  s.bubble.by_cause = {0.051, 0.044, 0.012, 0.0089, 0, 0.001, 0};
  for (const double share : s.bubble.by_cause) s.bubble.fraction += share;
  s.communication.exposed = 0.0089 + 0.098;
  s.communication.hidden = 0.14;
  s.fit.capacity = {80LL << 30};
  s.fit.reserve = {5LL << 30};
  s.fit.framework = {3LL << 29};
  for (int r = 0; r < stages; ++r) {
    s.stage_times.push_back({{r == 0 ? 0.1054 : r == stages - 1 ? 0.1134 : 0.1034}, {0.1411}, {0.0712}, {0.00213}});
    s.bubble.per_stage.push_back(0.09 + r * 0.001);
    s.bubble.by_cause_per_stage.push_back({0.06 - 0.003 * r, 0.02 + 0.004 * r, 0.004, 0.006, 0, 0, 0});
    s.memory.push_back(memory_of(r, s.fit.framework));
  }
  s.fit.margin = s.fit.capacity - s.fit.reserve - s.memory[0].with_framework;
  s.links = {{"node0/nic->leaf", 128, 0.412},
             {"node3/gpu0->switch", 512, 0.31},
             {"node12/gpu7->switch", 512, 0.30},
             {"pcie", 512, 0.00001}};
  s.cost_per_million_tokens = 8.27;
  s.energy_per_million_tokens_j = 5.21e6;
  return s;
}

}  // namespace foreshard::summaries
