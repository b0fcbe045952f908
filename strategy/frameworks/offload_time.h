// What an iteration takes longer because a framework keeps states or activations in host memory (strategy/cost/offload.h). Copies run
// beside the computes, both directions of the link at once, a layer ahead: a forward or backward takes the longest of the three.
//
//   forward    stall = max(0, in / rate - computes, out / rate - computes)       computes: of the layers, of one micro-batch
//   backward   likewise; gradients that a kernel adds through the link prolong the computes
//   update     on the device max(in, out) / rate, for two layers' states are there at once; on the CPU
//              bytes of host memory / its rate + parameters / rate
//
// A pipeline of one stage: with several, who waits for whose copies is not a sum. docs/cost-model.md, "Host memory".
#pragma once

#include <variant>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/memory_traits.h"
#include "strategy/cost/offload.h"

namespace foreshard {

// What a rank has of its node.
struct HostRates {
  BytesPerSecond link = {};    // device to host and back, per direction, as the datasheet states it
  BytesPerSecond memory = {};  // of the host
  bool operator==(const HostRates&) const = default;
};
struct LayerTimes {  // computes of one layer and micro-batch
  Seconds forward = {}, backward = {};
};
struct OffloadStall {
  Seconds forward = {}, backward = {};  // per micro-batch
  Seconds update = {};                  // per iteration
};

// The strategy may leave open what `resolve` decides. Refuses what `lower` refuses.
std::variant<OffloadStall, Infeasible> offload_stall(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                                     const MemoryTraits& traits, const HostRates& rates,
                                                     const LayerTimes& layer);

}  // namespace foreshard
