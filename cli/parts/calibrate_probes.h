// The plans that `calibrate` executes: small models of each family under many strategies, with sizes that no shipped model has.
#pragma once

#include <vector>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// Plans for the host, of one or two ranks, with steps of a few milliseconds to some tenths of a second. Hidden sizes above
// `largest_hidden` are left out; where that leaves anything out, the image models are left out too.
std::vector<Plan> calibration_probes(const Cluster& cluster, const std::vector<DType>& dtypes, std::int64_t largest_hidden);
// Plans for a GPU, of up to sixteen ranks, with sequences of up to `longest` tokens.
std::vector<Plan> gpu_probes(const Cluster& cluster, const std::vector<DType>& dtypes, std::int64_t largest_hidden,
                             std::int64_t longest);

// Used by both.
enum class ProbeFamily : std::uint8_t { Gpt, Llama, Bert };
struct ProbeSize {
  std::int64_t hidden = 0, head_dim = 0, seq = 0, micro_batch = 0, vocab = 0;
};
Model probe_model(ProbeFamily family, const ProbeSize& size);
// Appends the plan of two micro-batches; appends nothing where the model cannot be lowered with this strategy.
void add_probe(std::vector<Plan>& probes, const Model& model, Strategy strategy, const Cluster& cluster);

}  // namespace foreshard
