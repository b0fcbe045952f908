// Stages with degrees of their own (docs/lowering.md): every replica of a stage is a role. Each is built like the role of an ordinary
// pipeline with one replica per stage; then its micro-batches get their numbers in the whole step, and its transfers their other
// ends, which change with the micro-batch.
//
//   stage 0: 2 x tp 1     s0r0  0 2 4 6 --\      /--  0..3   s1r0 (tp 2)       tensor axes are factors, so that ranks of groups of
//                         s0r1  1 3 5 7 --/------\--  0..3                     different sizes have coordinates in common
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/lower/role_program.h"
#include "strategy/schedule/stage_turns.h"

namespace foreshard {

namespace {

class StagesLowering {
 public:
  StagesLowering(const Model& model, const Cluster& cluster, const Strategy& strategy)
      : whole_{.model = model, .cluster = cluster, .strategy = strategy} {
    microbatches_ = static_cast<int>(strategy.batch.global / strategy.batch.micro);
    int first = 0;
    for (const StageDegrees& stage : strategy.stages) {
      replicas_.push_back(stage.dp);
      first_.push_back(first);
      first += stage.dp;
    }
  }

  std::variant<Lowered, Infeasible> lower(const LowerOptions& options) {
    Plan& plan = whole_.plan;
    plan.stages = stages();
    plan.samples = whole_.strategy.batch.global;
    whole_.tables.sharding = sharding_of(whole_.strategy, state_types(whole_.strategy));
    plan.costs.push_back({.device_kind = whole_.cluster.nodes.front().shape.gpu});
    add_axes();
    add_tied_group();
    const std::vector<StageTurns> turns = stage_turns(*whole_.strategy.pipeline.schedule, replicas_, microbatches_);
    for (int stage = 0; stage < stages(); ++stage)
      if (auto refused = add_stage(stage, turns[static_cast<std::size_t>(stage)])) return *refused;
    plan.microbatches = microbatches_;
    address_all();
    return finish_plan(whole_, options);
  }

 private:
  // The other end of a transfer: a role with the same axes, or the ranks of both tensor groups together.
  struct Way {
    std::int32_t shift = 0;
    GroupId group = {};
    bool near = false;  // in the same node: what it costs
    auto operator<=>(const Way&) const = default;
  };
  struct Ways {
    Way in_before = {}, out_before = {}, in_after = {}, out_after = {};  // from and to the stage before, the stage after
    auto operator<=>(const Ways&) const = default;
  };

  int stages() const { return static_cast<int>(replicas_.size()); }
  const StageDegrees& degrees(int stage) const { return whole_.strategy.stages[static_cast<std::size_t>(stage)]; }
  RoleId role_of(int stage, int microbatch) const {
    const auto at = static_cast<std::size_t>(stage);
    return {first_[at] + microbatch % replicas_[at]};
  }
  std::vector<RoleId> roles_of(int stage) const {
    std::vector<RoleId> roles;
    for (int replica = 0; replica < degrees(stage).dp; ++replica) roles.push_back(role_of(stage, replica));
    return roles;
  }

  // tp of the smallest group, and what each larger degree is a multiple of the one below by.
  void add_axes() {
    std::set<int> sizes;
    for (const StageDegrees& stage : whole_.strategy.stages) sizes.insert(stage.tp);
    int below = 1;
    for (const int size : sizes) {
      if (size == 1) continue;
      const AxisId axis{static_cast<std::int32_t>(axes_.size())};
      axes_.emplace_back(size, axis);
      whole_.plan.axes.push_back({.name = axis_name(DenseKind::Tensor, static_cast<int>(axes_.size())),
                                  .dense = DenseKind::Tensor,
                                  .size = size / below});
      whole_.plan.placement.order.push_back(axis);
      below = size;
    }
    whole_.plan.placement.order.push_back(Placement::kRole);
  }
  std::vector<AxisId> axes_of(int tp) const {
    std::vector<AxisId> axes;
    for (const auto& [size, axis] : axes_)
      if (size <= tp) axes.insert(axes.begin(), axis);
    return axes;
  }

  void add_tied_group() {
    const auto* transformer = std::get_if<Transformer>(&whole_.model.shape);
    if (!transformer || !shares_embedding(*transformer) || stages() == 1) return;
    std::vector<RoleId> roles = roles_of(0);
    for (const RoleId role : roles_of(stages() - 1)) roles.push_back(role);
    whole_.add_group({"tied embeddings", {}, {}, LayoutGroup::Roles::Tied}, std::move(roles));
  }

  // As if the stage were one of a pipeline of its own degree.
  Strategy strategy_of(int stage) const {
    Strategy s = whole_.strategy;
    s.tp = degrees(stage).tp;
    s.vocab_multiple *= widest_tp(whole_.strategy) / s.tp;  // the same rows everywhere
    return s;
  }

  std::optional<Infeasible> add_stage(int stage, const StageTurns& turns) {
    Lowering own{.model = whole_.model, .cluster = whole_.cluster, .strategy = strategy_of(stage)};
    const Strategy& s = own.strategy;
    auto graph = graph_of(whole_.model, s);
    if (auto* refused = std::get_if<Infeasible>(&graph)) return *refused;
    own.graph = std::get<OpGraph>(std::move(graph));
    auto tables = tables_of(whole_.model, s, own.graph);
    if (auto* refused = std::get_if<Infeasible>(&tables)) return *refused;
    own.tables = std::get<StrategyTables>(std::move(tables));
    const auto count = static_cast<std::size_t>(stages());
    own.tables.schedule.order.resize(count), own.input_slots.resize(count), own.gradient_slots.resize(count);
    own.tables.schedule.order[static_cast<std::size_t>(stage)] = turns.list;
    own.input_slots[static_cast<std::size_t>(stage)] = turns.input_slots;
    own.gradient_slots[static_cast<std::size_t>(stage)] = turns.gradient_slots;
    own.plan = std::move(whole_.plan);
    own.plan.microbatches = microbatches_ / degrees(stage).dp;
    own.axes = axes_of(s.tp);
    own.groups = whole_.groups;  // of tied embeddings
    if (degrees(stage).dp > 1) own.replica_roles = roles_of(stage);
    for (const LayoutGroup& group : own.tables.layout.groups) own.group(group.over, group.stream, group.name);
    own.embedding = whole_.embedding;
    SharedPrograms shared;
    add_role(own, stage, shared);
    whole_.embedding = own.embedding;
    whole_.plan = std::move(own.plan);
    repeat_role(degrees(stage).dp);
    return {};
  }

  // The replicas of a stage: equal but for their number.
  void repeat_role(int replicas) {
    std::vector<Role>& roles = whole_.plan.roles;
    const Role first = roles.back();
    if (replicas > 1) roles.back().name += ", replica 0";
    for (int replica = 1; replica < replicas; ++replica) {
      roles.push_back(first);
      roles.back().name += ", replica " + std::to_string(replica);
    }
  }

  void address_all() {
    Plan& plan = whole_.plan;
    const Network network(whole_.cluster);
    const Ranks ranks(plan);
    for (std::size_t r = 0; r < plan.roles.size(); ++r)
      nodes_.push_back(network.node(ranks.device(ranks.first({static_cast<std::int32_t>(r)}))));
    for (int stage = 0; stage < stages(); ++stage)
      for (int replica = 0; replica < degrees(stage).dp; ++replica) address_role(stage, replica);
    plan.segments = std::move(segments_);
  }

  void address_role(int stage, int replica) {
    const RoleId role = role_of(stage, replica);
    for (Action& action : whole_.plan.roles[role.index()].actions) {
      Ways ways;
      if (const std::int32_t own = action.does.empty() ? -1 : action.does.front().microbatch; own >= 0) {
        const int microbatch = own * degrees(stage).dp + replica;
        action.does.front().microbatch = microbatch;
        action.args.front() = microbatch;
        ways = ways_of(stage, role, microbatch);
      }
      action.segment = addressed(action.segment, ways);
    }
  }

  Ways ways_of(int stage, RoleId role, int microbatch) {
    Ways ways;
    if (stage > 0) {
      const RoleId before = role_of(stage - 1, microbatch);
      ways.in_before = way(role, before, before), ways.out_before = way(role, before, role);
    }
    if (stage + 1 < stages()) {
      const RoleId after = role_of(stage + 1, microbatch);
      ways.in_after = way(role, after, after), ways.out_after = way(role, after, role);
    }
    return ways;
  }

  Way way(RoleId here, RoleId there, RoleId sender) {
    const bool near = nodes_[here.index()] == nodes_[there.index()];
    const std::vector<AxisId>&a = whole_.plan.roles[here.index()].axes, &b = whole_.plan.roles[there.index()].axes;
    if (a == b) return {.shift = there.value - here.value, .near = near};
    const RoleId receiver = sender == here ? there : here;
    auto [entry, fresh] = meetings_.try_emplace({sender, receiver});
    if (fresh) {  // the longer list of axes ends with the shorter one
      const std::vector<AxisId>& longer = a.size() > b.size() ? a : b;
      const auto more =
          longer.begin() + std::abs(static_cast<std::ptrdiff_t>(a.size()) - static_cast<std::ptrdiff_t>(b.size()));
      entry->second = {static_cast<std::int32_t>(whole_.plan.groups.size())};
      whole_.plan.groups.push_back({"hand over", {sender, receiver}, {longer.begin(), more}});
    }
    return {.group = entry->second, .near = near};
  }

  SegmentId addressed(SegmentId segment, const Ways& ways) {
    auto [entry, fresh] = known_.try_emplace({segment, ways}, SegmentId{static_cast<std::int32_t>(segments_.size())});
    if (!fresh) return entry->second;
    segments_.push_back(whole_.plan.segments[segment.index()]);
    for (Instruction& run : segments_.back().instructions)
      if (const auto* exchange = std::get_if<Exchange>(&run.what)) {
        const bool sends = exchange->to.has_value(), before = (sends ? exchange->to : exchange->from)->role_shift < 0;
        address(run, before ? (sends ? ways.out_before : ways.in_before) : (sends ? ways.out_after : ways.in_after));
      }
    return entry->second;
  }

  // Between tensor groups of different sizes: from the first rank of those that hold the same, to all of its partners. Both name one
  // block: what the sender has stays as it is.
  void address(Instruction& run, const Way& way) const {
    auto& exchange = std::get<Exchange>(run.what);
    const bool sends = exchange.to.has_value();
    if (!way.group.valid()) {
      (sends ? exchange.to : exchange.from)->role_shift = way.shift;
      return;
    }
    (sends ? run.writes : run.reads) = sends ? run.reads : run.writes;
    run.what = Collective{.kind = CollectiveKind::Broadcast,
                          .algorithm = Algorithm::Ring,
                          .group = way.group,
                          .bytes = exchange.bytes,
                          .dtype = whole_.compute_type()};
  }

  Lowering whole_;
  int microbatches_ = 1;
  std::vector<int> replicas_ = {}, first_ = {};    // [stage]: and its first role
  std::vector<std::pair<int, AxisId>> axes_ = {};  // tensor degree and the factor that it adds, rising
  std::vector<int> nodes_ = {};                    // [role]: of its first rank
  std::vector<Segment> segments_ = {};             // with their peers
  std::map<std::pair<SegmentId, Ways>, SegmentId> known_ = {};
  std::map<std::pair<RoleId, RoleId>, GroupId> meetings_ = {};  // sender, receiver
};

}  // namespace

std::variant<Lowered, Infeasible> lower_stages(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                               const LowerOptions& options) {
  return StagesLowering(model, cluster, strategy).lower(options);
}

}  // namespace foreshard
