// What the parts of `lower` share: the resolved inputs and the plan that grows. Internal to strategy/.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/graph/op_graph.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"
#include "strategy/recompute/recompute_runs.h"
#include "strategy/schedule/schedule.h"
#include "strategy/schedule/stage_layout.h"

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
  std::vector<char> redone = {};     // [op graph layer]: the form in which it keeps values (redone_layers.h, keep_forms)
  ScheduleLists lists;
  std::vector<int> input_slots, gradient_slots;  // [stage]: receive buffers

  Plan plan = {};
  std::vector<AxisId> axes = {};  // of the role being built, slowest first
  GroupId data_group = {};        // all ranks that hold the same parameters: outer data x data x context
  GroupId shard_group = {};       // ranks that a ZeRO shard is spread over: data x context
  GroupId replica_group = {};     // equal shards of different ZeRO groups: outer data
  GroupId tp_group = {}, cp_group = {}, tp_gradient_group = {};
  GroupId tied_group = {};                            // first and last role: the two copies of a tied embedding
  bool tied_over_replicas = false;                    // ... and all replicas of both: their gradients are summed there alone
  TensorId embedding = {};                            // the token embedding, once a stage holds it
  std::optional<EmbeddingPlace> embedding_here = {};  // ... and where, once a chunk of the role being built does
  GroupId norm_group = {};   // ranks whose gradients together are the whole model's; clipping by the global norm
  BufferId norm = {};        // of every role: the square of that norm
  BufferId loss_scale = {};  // of every role, with a dynamic loss scale: its state
  int shards = 1;            // ranks of shard_group when ZeRO is on
  int replicas = 1;          // ranks of data_group
  int zero = 0;              // effective ZeRO stage: 0 when there is nothing to shard over

  // Axes of the role of some kinds, slowest first; none when their degree is 1.
  std::vector<AxisId> over(std::initializer_list<DenseKind> kinds) const {
    std::vector<AxisId> found = axes;
    std::erase_if(found, [&](AxisId axis) {
      return std::find(kinds.begin(), kinds.end(), plan.axes[axis.index()].dense) == kinds.end();
    });
    return found;
  }
  bool clips() const { return *strategy.clip_norm > 0; }
  bool scales_dynamically() const { return strategy.loss_scale == 0; }
  bool measures() const { return clips() || scales_dynamically(); }  // the global norm
  int stages() const { return layout.stages(); }
  int chunks() const { return strategy.virtual_stages; }
};

// Appends a group to the plan; invalid when there is nothing to span.
GroupId add_group(Plan& plan, const std::string& name, std::vector<AxisId> over, std::vector<RoleId> roles = {});

// The inputs of a resolved strategy that has no stages of their own, up to the roles: graph, layout, schedule, axes, groups.
std::variant<Lowering, Infeasible> begin_lowering(const Model& model, const Cluster& cluster, Strategy strategy);

// The plan once its roles are there: devices, offsets, costs, the loss scale.
std::variant<Lowered, Infeasible> finish_plan(Lowering& lowering, const LowerOptions& options);

// lower() of a resolved strategy that says its stages one by one (lower_stages.cpp).
std::variant<Lowered, Infeasible> lower_stages(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                               const LowerOptions& options);

// resolve() of such a strategy: its own rules, before those of all.
std::optional<Infeasible> resolve_stages(const Model& model, const Cluster& cluster, Strategy& strategy);

// The graph that the strategy's local shapes make, or why they cannot be.
std::variant<OpGraph, Infeasible> graph_of(const Model& model, const Strategy& strategy);

// What the local shapes of a resolved strategy depend on.
Sharding sharding_of(const Strategy& strategy, const StateTypes& types);

}  // namespace foreshard
