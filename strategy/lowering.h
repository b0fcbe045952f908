// What the parts of `lower` share: the resolved inputs and the plan that grows. Internal to strategy/.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/cluster.h"
#include "core/model.h"
#include "core/op_graph.h"
#include "core/plan.h"
#include "core/strategy.h"
#include "strategy/recompute_runs.h"
#include "strategy/schedule.h"
#include "strategy/stage_layout.h"

namespace foreshard {

// Where a chunk keeps the token embedding.
struct EmbeddingPlace {
  BufferId value = {}, gradient = {};
  std::int64_t element = 0, elements = 0;  // in these buffers
};

struct Lowering {
  const Model& model;
  const Cluster& cluster;
  Strategy strategy;  // resolved
  StateTypes types;
  OpGraph graph;
  StageLayout layout;                // layers of each of the pp * virtual_stages stages
  std::vector<StageRuns> runs = {};  // [stage] of a recomputation schedule; empty: layer by layer
  std::vector<char> redone = {};     // [op graph layer]: its backward runs its whole forward again (recompute_layers.h)
  ScheduleLists lists;
  std::vector<int> input_slots, gradient_slots;  // [stage]: receive buffers

  Plan plan = {};
  AxisId dp = {}, dp_outer = {}, cp = {}, tp = {};  // dp_outer: replicas of a ZeRO group; invalid when the degree is 1
  GroupId data_group = {};                          // all ranks that hold the same parameters: dp_outer x dp x cp
  GroupId shard_group = {};                         // ranks that a ZeRO shard is spread over: dp x cp
  GroupId replica_group = {};                       // equal shards of different ZeRO groups: dp_outer
  GroupId tp_group = {}, cp_group = {}, tp_gradient_group = {};
  GroupId tied_group = {};                            // first and last role: the two copies of a tied embedding
  TensorId embedding = {};                            // the token embedding, once a stage holds it
  std::optional<EmbeddingPlace> embedding_here = {};  // ... and where, once a chunk of the role being built does
  GroupId norm_group = {};   // ranks whose gradients together are the whole model's; clipping by the global norm
  BufferId norm = {};        // of every role: the square of that norm
  BufferId loss_scale = {};  // of every role, with a dynamic loss scale: its state
  EventId norm_ready = {};
  int shards = 1;    // ranks of shard_group when ZeRO is on
  int replicas = 1;  // ranks of data_group
  int zero = 0;      // effective ZeRO stage: 0 when there is nothing to shard over

  bool clips() const { return strategy.clip_norm > 0; }
  bool scales_dynamically() const { return strategy.loss_scale == 0; }
  bool measures() const { return clips() || scales_dynamically(); }  // the global norm
  int stages() const { return layout.stages(); }
  int chunks() const { return strategy.virtual_stages; }
};

// What the local shapes of a resolved strategy depend on.
Sharding sharding_of(const Strategy& strategy, const StateTypes& types);

}  // namespace foreshard
