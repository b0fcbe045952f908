// The state of one run of lower(): its inputs, the tables, and the plan that is being built. The functions of strategy/lower and
// strategy/state share it. Internal to strategy/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/graph/op_graph.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

// Where the parameters and gradients of the token embedding lie: first element and number of elements in these two buffers.
struct EmbeddingPlace {
  BufferId value = {}, gradient = {};
  std::int64_t element = 0, elements = 0;
};

struct Lowering {
  const Model& model;
  const Cluster& cluster;
  // Resolved. Only for the plan's record of its origin and for estimates; the program follows from the tables.
  Strategy strategy;
  StrategyTables tables = {};
  OpGraph graph = {};                                      // of a whole micro-batch
  std::map<int, OpGraph> graph_of_parts = {};              // [number of parts]: of one part of a micro-batch
  std::vector<int> input_slots = {}, gradient_slots = {};  // [stage]: slots of its receive buffers

  Plan plan = {};
  std::vector<AxisId> axes = {};  // of the role being built, slowest first
  // Roles that hold the same stage as the role being built, itself included; empty: no other.
  std::vector<RoleId> replica_roles = {};
  std::vector<std::pair<LayoutGroup, GroupId>> groups = {};  // groups of the plan so far
  std::unordered_map<std::string, TensorId> tensor_of = {};  // by name: parameters of stages that several roles hold
  TensorId embedding = {};                                   // the token embedding, once a stage that holds it is built
  // In the role being built, once a chunk with the embedding is built.
  std::optional<EmbeddingPlace> embedding_here = {};
  int weight_slots = 1;      // of the role being built: slots for versions of its weights
  BufferId norm = {};        // in every role: the square of the norm of all gradients
  BufferId loss_scale = {};  // in every role, with a dynamic loss scale: its state

  // Call before the role of a pipeline rank is built. Sets weight_slots; with two routes also replica_roles (the rank and its mirror image,
  // which hold the same stages) and their groups.
  void begin_role(int rank);
  // The role's axes of the given kinds, slowest first; empty if the product of their degrees is 1.
  std::vector<AxisId> over(const Kinds& kinds) const;
  // Number of ranks along these axes. If data axes are among the kinds, times the number of roles that hold the same stage.
  int ranks(const Kinds& kinds) const;
  // The group of these ranks on a stream; adds it to the plan at the first call. Invalid if it would have one rank. `name`: for display.
  GroupId group(const Kinds& kinds, StreamId stream, const std::string& name = {});
  // The group over several roles, Tied or All; invalid if the layout has none.
  GroupId group_of_roles(LayoutGroup::Roles roles) const;
  // Adds a group to the plan, unless it has neither axes nor roles.
  void add_group(const LayoutGroup& group, std::vector<RoleId> roles = {});

  const CommunicationRow& communication(Purpose purpose, int chunk = 0) const {
    return tables.communication.row(purpose, chunk);
  }
  // The stream of the communication that cells and delayed weight gradients hide: between ranks that share experts, otherwise between the
  // operators of tensor- and context-parallel ranks.
  StreamId hidden_stream() const;
  // Whether the slots that layers use in turn (gathered parameters, whole gradients) have the size of their layer: one buffer per size,
  // ordered by the same events. The memory planner lets them share bytes by the order of the run, if that is not too long; otherwise one
  // buffer with slots of the largest size takes less.
  bool places_by_size() const;
  DType compute_type() const { return tables.sharding.compute; }
  int stages() const { return tables.layout.layers.stages(); }
  // First layer of the op graph, and number of layers, of a stage of any route.
  int first_layer(int stage) const {
    return tables.layout.layers.first[static_cast<std::size_t>(tables.schedule.model_stage(stage))];
  }
  int layers_of(int stage) const {
    return tables.layout.layers.first[static_cast<std::size_t>(tables.schedule.model_stage(stage)) + 1] - first_layer(stage);
  }
};

}  // namespace foreshard
