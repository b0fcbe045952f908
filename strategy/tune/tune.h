// tune: decides everything that a strategy leaves open, before it is lowered: values "auto" and "best" (layer split, parts, buckets,
// recomputation, order of the pipeline) and the runs of a recomputation schedule.
#pragma once

#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"

namespace foreshard {

// One choice of a form of recomputation for every layer of a pipeline rank: what it costs and what it keeps.
struct LayerTrade {
  Seconds seconds = {};          // by which one micro-batch's backward is longer than when everything is kept
  Bytes kept = {};               // activations of the layers, of all micro-batches in flight
  std::vector<int> layers = {};  // [form]: how many layers of a chunk use it
  bool operator==(const LayerTrade&) const = default;
};
// What `--recompute best` chose from on one rank.
struct RankTrades {
  std::vector<LayerRecompute> forms = {};  // the forms that layers may use
  std::vector<LayerTrade> front = {};      // the Pareto front of time and memory, fastest first; empty for more than 32 layers
  LayerTrade chosen = {};                  // the choice that was made: it fits, unless none does
};

struct Tuned {
  Strategy strategy = {};               // resolved, with nothing left open but what `rows` says
  TunedRows rows = {};                  // runs of a recomputation schedule, values that go to host memory
  std::vector<RankTrades> trades = {};  // [pipeline rank]; empty without `--recompute best`
};
// Infeasible when the strategy cannot be resolved, or its pipeline, split or recomputation is not possible. Memory is not checked: `lower`
// does that.
std::variant<Tuned, Infeasible> tune(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                     const LowerOptions& options = {});

// Lowers what tune() made, workers of an asynchronous server included. Infeasible: as lower().
std::variant<Lowered, Infeasible> lower_tuned(const Model& model, const Cluster& cluster, const Tuned& tuned,
                                              const LowerOptions& options = {});

// Tunes, then lowers. Infeasible when either is; `lower` also checks the memory.
std::variant<Lowered, Infeasible> tuned_plan(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                             const LowerOptions& options = {});

}  // namespace foreshard
