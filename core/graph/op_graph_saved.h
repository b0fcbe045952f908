// What the backward pass of a layer finds: the values kept since the forward, and the operators it runs again.
#pragma once

#include <string>
#include <vector>

#include "core/graph/op_graph.h"

namespace foreshard {

struct Retention {
  std::vector<int> kept = {};   // values kept from the forward to the backward, ascending
  std::vector<int> rerun = {};  // operators the backward runs again (forward work), in topological order
  bool operator==(const Retention&) const = default;
};

// `modules` names the modules or operators to recompute ("attention", "activation", "norm", "mlp"; "mlp" includes its
// activation); empty: none. A value that only recomputed operators of the same module read is made again; one that
// leaves its module is kept, except for "norm" and "activation", whose results are dropped although the next operator
// reads them. Operators marked always_recompute are run again in any case.
Retention retention(const LayerGraph& layer, const std::vector<std::string>& modules = {});

// Everything is made again from the layer's input. A layer without input (embedding) keeps what it keeps anyway.
Retention full_recompute(const LayerGraph& layer);

Bytes kept_bytes(const LayerGraph& layer, const Retention& retention);

}  // namespace foreshard
