#include "strategy/state/correction_bias.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace foreshard {

namespace {

const ops::Route* route_of(const Instruction& run) {
  const auto* what = std::get_if<Compute>(&run.what);
  return what && ops::is_forward(what->phase) ? std::get_if<ops::Route>(&what->op) : nullptr;
}

// A router by its layer's index in the role and its name there, as the instructions of a segment refer to it; and the name of its bias.
struct Router {
  LayerId layer = {};
  std::string run = {};
  std::string bias = {};
  bool operator==(const Router&) const = default;
};

// "layers.2" before "layers.10": so roles that share segments have their routers in the same order.
bool comes_before(const Router& a, const Router& b) {
  return a.bias.size() != b.bias.size() ? a.bias.size() < b.bias.size() : a.bias < b.bias;
}

// Each segment of the role once, in the order of their first actions.
std::vector<const Segment*> segments_of(const Plan& plan, const Role& role) {
  std::vector<const Segment*> segments;
  std::vector<char> seen(plan.segments.size(), 0);
  for (const Action& action : role.actions)
    if (!std::exchange(seen[action.segment.index()], 1)) segments.push_back(&plan.segments[action.segment.index()]);
  return segments;
}

std::vector<Router> routers_of(const Plan& plan, const Role& role) {
  std::vector<Router> routers;
  for (const Segment* segment : segments_of(plan, role))
    for (const Instruction& run : segment->instructions) {
      if (!route_of(run)) continue;
      const std::string part = run.name.substr(0, run.name.size() - std::string("route").size());
      Router router{run.layer, run.name, role.layers[run.layer.index()] + "." + part + "router.correction_bias"};
      if (std::ranges::find(routers, router) == routers.end()) routers.push_back(std::move(router));
    }
  std::ranges::sort(routers, comes_before);
  return routers;
}

struct Balance {  // of one role
  std::vector<Router> routers = {};
  std::int64_t experts = 0;
  DType dtype = DType::F32;
  BufferId biases = {}, counts = {};

  Bytes each() const { return size_of(dtype) * experts; }
  Bytes all() const { return each() * static_cast<std::int64_t>(routers.size()); }
  Use of(BufferId buffer, std::size_t router) const {
    return {.buffer = buffer, .from = each() * static_cast<std::int64_t>(router), .length = each()};
  }
};

// The segment with routers that read their biases, and count in the forward. Recomputations have the name of the forward.
Segment biased(Segment segment, const Balance& balance) {
  for (Instruction& run : segment.instructions) {
    if (!route_of(run)) continue;
    const auto same = [&](const Router& router) { return router.layer == run.layer && router.run == run.name; };
    const auto found = std::ranges::find_if(balance.routers, same);
    FS_ASSERT(found != balance.routers.end());
    const auto router = static_cast<std::size_t>(found - balance.routers.begin());
    run.reads.push_back(balance.of(balance.biases, router));
    if (std::get<Compute>(run.what).phase != Phase::Forward) continue;
    run.reads.push_back(balance.of(balance.counts, router));
    run.writes.push_back(balance.of(balance.counts, router));
  }
  return segment;
}

TensorId tensor_of(Plan& plan, const Router& router, const Balance& balance) {
  const auto known = std::ranges::find(plan.tensors, router.bias, &Tensor::name);
  const TensorId id = {static_cast<std::int32_t>(known - plan.tensors.begin())};
  if (known == plan.tensors.end())
    plan.tensors.push_back({.name = router.bias, .shape = {balance.experts}, .dtype = balance.dtype, .init = "zeros"});
  return id;
}

Balance add_buffers(Plan& plan, Role& role, std::vector<Router> routers) {
  Balance balance{.routers = std::move(routers)};
  for (const Segment* segment : segments_of(plan, role))
    for (const Instruction& run : segment->instructions)
      if (route_of(run)) {
        balance.experts = std::get<Compute>(run.what).shapes.at(0).dims.at(1);
        balance.dtype = role.buffers[run.writes.at(2).buffer.index()].dtype;
      }
  Buffer buffer{.name = "expert_choices",
                .category = Category::Optimizer,
                .dtype = balance.dtype,
                .bytes = balance.all(),
                .resident = true};
  balance.counts = {static_cast<std::int32_t>(role.buffers.size())};
  role.buffers.push_back(buffer);
  buffer.name = "correction_biases";
  for (std::size_t r = 0; r < balance.routers.size(); ++r)
    buffer.holds.push_back(
        {.tensor = tensor_of(plan, balance.routers[r], balance), .at = balance.each() * static_cast<std::int64_t>(r)});
  balance.biases = {static_cast<std::int32_t>(role.buffers.size())};
  role.buffers.push_back(std::move(buffer));
  return balance;
}

// The roles with these routers: more than one if pipelines run in both directions. An empty list: only this one.
std::vector<RoleId> roles_with(const std::vector<std::vector<Router>>& routers, std::size_t role) {
  std::vector<RoleId> roles;
  for (std::size_t r = 0; r < routers.size(); ++r)
    if (std::ranges::equal(routers[r], routers[role], {}, &Router::bias, &Router::bias))
      roles.push_back({static_cast<std::int32_t>(r)});
  if (roles.size() == 1) roles.clear();
  return roles;
}

GroupId group_of(Plan& plan, std::vector<RoleId> roles, const std::vector<AxisId>& over) {
  const auto same = [&](const Group& group) { return group.roles == roles && group.over == over; };
  const auto found = std::ranges::find_if(plan.groups, same);
  const GroupId id = {static_cast<std::int32_t>(found - plan.groups.begin())};
  if (found == plan.groups.end())
    plan.groups.push_back({.name = "all ranks of a stage", .roles = std::move(roles), .over = over});
  return id;
}

// The end of the run, on the compute stream.
Segment end_of_run(Plan& plan, const Role& role, std::vector<RoleId> roles, const Balance& balance, double speed) {
  Segment segment{.name = "balance experts"};
  std::vector<AxisId> over;
  for (const AxisId axis : role.axes)
    if (plan.axes[axis.index()].size > 1) over.push_back(axis);
  if (!over.empty() || !roles.empty())
    segment.instructions.push_back(
        {.name = "expert_choices_sum",
         .what = Collective{.group = group_of(plan, std::move(roles), over), .bytes = balance.all(), .dtype = balance.dtype},
         .stream = {0},
         .reads = {{.buffer = balance.counts}},
         .writes = {{.buffer = balance.counts}}});
  const auto routers = static_cast<std::int64_t>(balance.routers.size());
  segment.instructions.push_back({.name = "balance_experts",
                                  .what = Compute{.op = ops::BalanceExperts{.speed = speed},
                                                  .phase = Phase::Update,
                                                  .shapes = {{{routers, balance.experts}, balance.dtype}},
                                                  .flops = {static_cast<double>(2 * routers * balance.experts)},
                                                  .traffic = balance.all() * 4},
                                  .stream = {0},
                                  .reads = {{.buffer = balance.counts}, {.buffer = balance.biases}},
                                  .writes = {{.buffer = balance.biases}, {.buffer = balance.counts}}});
  return segment;
}

SegmentId segment_of(Plan& plan, Segment segment) {
  const auto known = std::ranges::find(plan.segments, segment);
  const SegmentId id = {static_cast<std::int32_t>(known - plan.segments.begin())};
  if (known == plan.segments.end()) plan.segments.push_back(std::move(segment));
  return id;
}

}  // namespace

void add_correction_biases(Plan& plan, double speed) {
  std::vector<std::vector<Router>> routers;
  for (const Role& role : plan.roles) routers.push_back(routers_of(plan, role));
  std::vector<std::optional<Segment>> plain(plan.segments.size());  // as they were, of those that roles have changed
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    if (routers[r].empty()) continue;
    Role& role = plan.roles[r];
    const Balance balance = add_buffers(plan, role, routers[r]);
    std::vector<SegmentId> mine(plain.size());
    for (Action& action : role.actions) {
      const std::size_t at = action.segment.index();
      if (!mine[at].valid()) {
        const Segment& before = plain[at] ? *plain[at] : plan.segments[at];
        mine[at] = action.segment;
        if (std::ranges::any_of(before.instructions, [](const Instruction& run) { return route_of(run) != nullptr; })) {
          Segment changed = biased(before, balance);
          if (plain[at])
            mine[at] = segment_of(plan, std::move(changed));
          else
            plain[at] = std::exchange(plan.segments[at], std::move(changed));
        }
      }
      action.segment = mine[at];
    }
    role.actions.push_back({.segment = segment_of(plan, end_of_run(plan, role, roles_with(routers, r), balance, speed))});
  }
}

}  // namespace foreshard
