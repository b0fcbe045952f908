// tune: decides everything that a strategy leaves open, before it is lowered: "auto" and "best" (a layer split, parts, buckets, recomputation, the order of
// work), and the runs of a recomputation
// schedule.
#pragma once

#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"
#include "strategy/recompute/recompute_runs.h"

namespace foreshard {

// A way to recompute the layers of a pipeline rank: what it costs and what it keeps.
struct LayerTrade {
  Seconds seconds = {};          // more of one micro-batch's backward than when everything is kept
  Bytes kept = {};               // by the layers, of all micro-batches in flight
  std::vector<int> layers = {};  // [form]: of a chunk
  bool operator==(const LayerTrade&) const = default;
};
// What `--recompute best` chose from: the trades between time and memory that no other beats, fastest first (none for very many
// layers), and the one that fills the memory.
struct RankTrades {
  std::vector<LayerRecompute> forms = {};
  std::vector<LayerTrade> front = {};
  LayerTrade chosen = {};
};

struct Tuned {
  Strategy strategy = {};               // resolved, with nothing left open but a recomputation schedule ...
  std::vector<StageRuns> runs = {};     // ... whose runs these are, of each stage
  std::vector<RankTrades> trades = {};  // [pipeline rank], with `--recompute best`
};
std::variant<Tuned, Infeasible> tune(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                     const LowerOptions& options = {});

// Tunes, then lowers.
std::variant<Lowered, Infeasible> tuned_plan(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                             const LowerOptions& options = {});

}  // namespace foreshard
