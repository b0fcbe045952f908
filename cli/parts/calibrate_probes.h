// What `calibrate` executes: small models of every family under every way of splitting them, of sizes that no shipped model has.
#pragma once

#include <vector>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// Of the host: plans of one or two ranks, each a few milliseconds to tenths of seconds a step. The hidden size is at most `largest_hidden`; pictures
// are left out where it leaves something out.
std::vector<Plan> calibration_probes(const Cluster& cluster, const std::vector<DType>& dtypes, std::int64_t largest_hidden);
// Of a GPU: plans of up to sixteen ranks, with sequences up to `longest`.
std::vector<Plan> gpu_probes(const Cluster& cluster, const std::vector<DType>& dtypes, std::int64_t largest_hidden,
                             std::int64_t longest);

// What both are made of.
enum class ProbeFamily : std::uint8_t { Gpt, Llama, Bert };
struct ProbeSize {
  std::int64_t hidden = 0, head_dim = 0, seq = 0, micro_batch = 0, vocab = 0;
};
Model probe_model(ProbeFamily family, const ProbeSize& size);
// Two micro-batches; nothing where the model cannot be split like this.
void add_probe(std::vector<Plan>& probes, const Model& model, Strategy strategy, const Cluster& cluster);

}  // namespace foreshard
