// What the parts of a plan in the making share: the tables and the plan that grows. Internal to strategy/.
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

// Where a chunk keeps the token embedding.
struct EmbeddingPlace {
  BufferId value = {}, gradient = {};
  std::int64_t element = 0, elements = 0;  // in these buffers
};

struct Lowering {
  const Model& model;
  const Cluster& cluster;
  Strategy strategy;  // resolved: for the plan's origin and for what is not its program. The program follows from the tables
  StrategyTables tables = {};
  OpGraph graph = {};
  std::map<int, OpGraph> graph_of_parts = {};              // [parts]: of a micro-batch as many times smaller
  std::vector<int> input_slots = {}, gradient_slots = {};  // [stage]: receive buffers

  Plan plan = {};
  std::vector<AxisId> axes = {};                             // of the role being built, slowest first
  std::vector<RoleId> replica_roles = {};                    // that hold the same stage as it, when a stage has several
  std::vector<std::pair<LayoutGroup, GroupId>> groups = {};  // of the plan so far
  std::unordered_map<std::string, TensorId> tensor_of = {};  // by name, of stages that several roles hold
  TensorId embedding = {};                                   // the token embedding, once a stage holds it
  std::optional<EmbeddingPlace> embedding_here = {};         // ... and where, once a chunk of the role being built does
  int weight_slots = 1;                                      // of the role being built: versions of its weights
  BufferId norm = {};                                        // of every role: the square of the norm of all gradients
  BufferId loss_scale = {};                                  // of every role, with a dynamic loss scale: its state

  // The ranks that hold the stages of this pipeline rank: with two routes those of the mirrored one too. Before its role is built.
  void begin_role(int rank);
  // Axes of the role of some kinds, slowest first; none when their degree is 1.
  std::vector<AxisId> over(const Kinds& kinds) const;
  // The ranks of such a group; the roles that hold the same stage are among those that have data of their own.
  int ranks(const Kinds& kinds) const;
  // The group of such ranks on a stream, made when it is first asked for; invalid when a rank is alone. `name` is for people.
  GroupId group(const Kinds& kinds, StreamId stream, const std::string& name = {});
  // Of several roles; invalid where the layout has none.
  GroupId group_of_roles(LayoutGroup::Roles roles) const;
  void add_group(const LayoutGroup& group, std::vector<RoleId> roles = {});

  const CommunicationRow& communication(Purpose purpose, int chunk = 0) const {
    return tables.communication.row(purpose, chunk);
  }
  // Whether places in which layers take turns (gathered parameters, whole gradients) have the size of their layer: one buffer per size, which
  // take turns by the same events. The memory planner lets them share bytes, by the order of a run that is not too long; elsewhere one buffer
  // of the largest size takes less.
  bool places_by_size() const;
  DType compute_type() const { return tables.sharding.compute; }
  int stages() const { return tables.layout.layers.stages(); }
  // Of a stage of any route.
  int first_layer(int stage) const {
    return tables.layout.layers.first[static_cast<std::size_t>(tables.schedule.model_stage(stage))];
  }
  int layers_of(int stage) const {
    return tables.layout.layers.first[static_cast<std::size_t>(tables.schedule.model_stage(stage)) + 1] - first_layer(stage);
  }
};

}  // namespace foreshard
