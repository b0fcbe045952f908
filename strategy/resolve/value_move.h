// Activations that leave the device value by value (vDNN, free time), and rows that `tune` decides because no option states them.
#pragma once

#include <optional>
#include <vector>

#include "core/plan/plan.h"
#include "strategy/recompute/recompute_runs.h"
#include "strategy/residency/parameter_stays.h"

namespace foreshard {

// One value that leaves the device between its forward and its backward: when its bytes become free, and when they are taken again.
//
//   compute    | F0 | F1 | F2 | ... | B2 | B1 | B0 |      made by F0, read by F1 and B1
//   out             [ v    ]                              leaves with F2: computes behind F2 wait for the copy
//   in                              [ v  ]                returns with B2: the copy begins before B2
struct ValueMove {
  struct At {               // an operator
    int layer = 0, op = 0;  // of the op graph, of its LayerGraph
    bool operator==(const At&) const = default;
  };
  int layer = 0, value = 0;  // the layer that makes it; of its LayerGraph
  Space home = Space::PinnedHost;
  At leaves = {}, returns = {};     // of the forward, of the backward
  bool computes_wait_back = false;  // computes after that backward wait for the copy, even if they do not read it
  bool operator==(const ValueMove&) const = default;
};

// Rows of the tables that no option states, decided by `tune`.
struct TunedRows {
  std::vector<StageRuns> runs = {};                  // [stage]: under a recomputation schedule; empty: it has none
  std::optional<std::vector<ValueMove>> moves = {};  // with --offload-activations free-time
  std::optional<RegionRule> regions = {};            // with a policy of regions
  int servers = 0;  // of a worker of asynchronous servers: how many share the parameters, in whole units
};

}  // namespace foreshard
