// Recomputation inside a layer: which values stay in memory from the forward to the backward, and which operators the backward runs again.
#pragma once

#include <string>
#include <vector>

#include "core/graph/op_graph.h"

namespace foreshard {

struct Retention {
  std::vector<int> kept = {};   // values kept from the forward to the backward, ascending
  std::vector<int> rerun = {};  // operators whose forward the backward runs again, in topological order
  bool operator==(const Retention&) const = default;
};

// `modules` names the modules or operators to recompute ("attention", "activation", "norm", "mlp"; "mlp" includes its
// activation); empty: none. A value that an operator of such a module computes is dropped and computed again if only backwards of
// the same module read it; if the backward of another operator reads it, it is kept. Exceptions are "norm" and "activation": their results
// are always dropped. Operators marked always_recompute are run again in any case.
Retention retention(const LayerGraph& layer, const std::vector<std::string>& modules = {});

// Everything is computed again from the layer's input. A layer without input (embedding) keeps what it keeps without recomputation.
Retention full_recompute(const LayerGraph& layer);

// Bytes of the kept values on this rank, for one micro-batch.
Bytes kept_bytes(const LayerGraph& layer, const Retention& retention);

}  // namespace foreshard
