#include "replay/validate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/error.h"
#include "core/plan/cost_tables.h"
#include "replay/rank_speed.h"

namespace foreshard::player {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 24;
constexpr std::int64_t kLongestBusy = std::int64_t{1} << 52;  // nanoseconds, 52 days: exact as a double
constexpr double kMostBytes = 1e14;                           // the engine counts in 1/65536 of a byte

// The place of an error, as text that is built only when there is one.
class Place {
 public:
  explicit Place(std::string field) : field_(std::move(field)) {}
  Place in(const std::string& more) const { return Place(field_ + more); }
  [[noreturn]] void bad(const std::string& found, const std::string& expected) const {
    throw Error("plan", field_, found, expected);
  }

 private:
  std::string field_;
};

std::string at(const char* name, std::size_t index) { return std::string(name) + "[" + std::to_string(index) + "]"; }

template <class Index>
bool within(Index index, std::size_t count) {
  return index.value >= 0 && index.index() < count;
}

void check_who(const Plan& plan) {
  for (std::size_t a = 0; a < plan.axes.size(); ++a)
    if (plan.axes[a].size < 1) Place(at("axes", a) + ".size").bad(std::to_string(plan.axes[a].size), "at least 1");
  if (plan.roles.empty()) Place("roles").bad("none", "at least one");
  std::int64_t ranks = 0;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const std::vector<AxisId>& axes = plan.roles[r].axes;
    std::int64_t here = 1;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (!within(axes[i], plan.axes.size()) || std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i),
                                                          axes[i]) != axes.begin() + static_cast<std::ptrdiff_t>(i))
        Place(at("roles", r) + ".axes").bad(std::to_string(axes[i].value), "different axes of the plan");
      here = std::min(here * plan.axes[axes[i].index()].size, kMostRanks);
    }
    ranks += here;
  }
  if (ranks > kMostRanks) Place("axes").bad(std::to_string(ranks) + " ranks", "at most " + std::to_string(kMostRanks));
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    for (const RoleId role : plan.groups[g].roles)
      if (!within(role, plan.roles.size()))
        Place(at("groups", g) + ".roles").bad(std::to_string(role.value), "roles of the plan");
    for (const AxisId axis : plan.groups[g].over)
      if (!within(axis, plan.axes.size())) Place(at("groups", g) + ".over").bad(std::to_string(axis.value), "axes of the plan");
  }
}

template <class MakePlace>
void check_bytes(Bytes bytes, const MakePlace& place) {
  if (bytes.value < 0 || static_cast<double>(bytes.value) > kMostBytes)
    place().in(".bytes").bad(std::to_string(bytes.value), "0 to 1e14");
}

template <class MakePlace>
void check_peer(const Plan& plan, const std::optional<Peer>& peer, const MakePlace& place) {
  if (!peer) return;
  for (const AxisId axis : peer->axes)
    if (!within(axis, plan.axes.size())) place().in(".axis").bad(std::to_string(axis.value), "an axis of the plan");
}

// Checks an instruction without the roles that issue it.
void check_instruction(const Plan& plan, std::size_t s, std::size_t i) {
  const Segment& segment = plan.segments[s];
  const Instruction& instruction = segment.instructions[i];
  const auto place = [&] { return Place(at("segments", s) + at(".instructions", i)); };
  for (const std::int32_t earlier : instruction.after)
    if (earlier < 0 || static_cast<std::size_t>(earlier) >= i)
      place().in(".after").bad(std::to_string(earlier), "an earlier instruction of the segment");
  for (const std::vector<EventUse>* uses : {&instruction.waits, &instruction.records})
    for (const EventUse& use : *uses)
      if (const auto* param = std::get_if<ParamId>(&use.slot.which); param != nullptr && !within(*param, segment.params.size()))
        place().in(".slot").bad(std::to_string(param->value), "a parameter of the segment");
  if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
    check_bytes(exchange->bytes, place);
    if (!exchange->to && !exchange->from) place().bad("an exchange with nobody", "to, from or both");
    check_peer(plan, exchange->to, place);
    check_peer(plan, exchange->from, place);
  } else if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
    check_bytes(collective->bytes, place);
    if (!within(collective->group, plan.groups.size()))
      place().in(".group").bad(std::to_string(collective->group.value), "a group of the plan");
  } else if (const auto* copy = std::get_if<Copy>(&instruction.what)) {
    check_bytes(copy->bytes, place);
    if (instruction.reads.empty() || instruction.writes.empty())
      place().bad("a copy without source or destination", "reads and writes");
  } else if (const double share = share_of_rows(instruction); !(share >= 0 && share <= 1)) {
    place().in(".others").bad(std::to_string(share), "0 to 1");
  }
}

// What a role must have for a segment that it issues.
void check_issued(const Plan& plan, const Role& role, std::size_t s) {
  const Segment& segment = plan.segments[s];
  for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
    const Instruction& instruction = segment.instructions[i];
    const auto place = [&] { return Place("role '" + role.name + "', " + at("segments", s) + at(".instructions", i)); };
    if (!within(instruction.stream, role.streams.size()))
      place().in(".stream").bad(std::to_string(instruction.stream.value), "a stream of the role");
    for (const std::vector<EventUse>* uses : {&instruction.waits, &instruction.records})
      for (const EventUse& use : *uses) {
        if (!within(use.event, role.events.size()))
          place().in(".event").bad(std::to_string(use.event.value), "an event of the role");
        const auto* slot = std::get_if<std::int32_t>(&use.slot.which);
        if (slot != nullptr && (*slot < 0 || *slot >= role.events[use.event.index()].slots))
          place().in(".slot").bad(std::to_string(*slot), "a slot of event '" + role.events[use.event.index()].name + "'");
      }
    if (!std::holds_alternative<Copy>(instruction.what)) continue;
    for (const Use* use : {&instruction.reads[0], &instruction.writes[0]})
      if (!within(use->buffer, role.buffers.size()))
        place().in(".buffer").bad(std::to_string(use->buffer.value), "a buffer of the role");
  }
}

// Event slots that an action passes as arguments: (parameter, number of slots).
std::vector<std::pair<std::size_t, std::int32_t>> slot_bounds(const Role& role, const Segment& segment) {
  std::vector<std::pair<std::size_t, std::int32_t>> bounds;
  for (const Instruction& instruction : segment.instructions)
    for (const std::vector<EventUse>* uses : {&instruction.waits, &instruction.records})
      for (const EventUse& use : *uses)
        if (const auto* param = std::get_if<ParamId>(&use.slot.which))
          bounds.emplace_back(param->index(), role.events[use.event.index()].slots);
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  return bounds;
}

void check_role(const Plan& plan, const Role& role) {
  std::vector<char> seen(plan.segments.size(), false);
  std::vector<std::vector<std::pair<std::size_t, std::int32_t>>> bounds(plan.segments.size());
  for (std::size_t a = 0; a < role.actions.size(); ++a) {
    const Action& action = role.actions[a];
    const auto place = [&] { return Place("role '" + role.name + "', " + at("actions", a)); };
    if (!within(action.segment, plan.segments.size()))
      place().in(".segment").bad(std::to_string(action.segment.value), "a segment of the plan");
    const std::size_t s = action.segment.index();
    if (!seen[s]) {
      check_issued(plan, role, s);
      bounds[s] = slot_bounds(role, plan.segments[s]);
      seen[s] = true;
    }
    if (action.args.size() != plan.segments[s].params.size())
      place().in(".args").bad(std::to_string(action.args.size()) + " values", std::to_string(plan.segments[s].params.size()));
    for (const auto& [param, slots] : bounds[s])
      if (action.args[param] < 0 || action.args[param] >= slots)
        place()
            .in(at(".args", param))
            .bad(std::to_string(action.args[param]), "an event slot, 0 to " + std::to_string(slots - 1));
  }
}

double bytes_of(const Instruction& instruction) {
  if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) return static_cast<double>(exchange->bytes.value);
  if (const auto* collective = std::get_if<Collective>(&instruction.what)) return static_cast<double>(collective->bytes.value);
  if (const auto* copy = std::get_if<Copy>(&instruction.what)) return static_cast<double>(copy->bytes.value);
  return 0;
}

void check_costs(const Plan& plan, const CostTable& table) {
  const std::string kind = "costs of '" + table.device_kind + "'";
  if (table.by_segment.size() != plan.segments.size())
    Place(kind).bad(std::to_string(table.by_segment.size()) + " segments", std::to_string(plan.segments.size()));
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    const std::vector<Instruction>& instructions = plan.segments[s].instructions;
    if (table.by_segment[s].size() != instructions.size())
      Place(kind + at(", segment", s))
          .bad(std::to_string(table.by_segment[s].size()) + " costs", std::to_string(instructions.size()));
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Cost& cost = table.by_segment[s][i];
      const auto place = [&] { return Place(kind + at(", segments", s) + at(".instructions", i)); };
      if (cost.busy.value < 0 || cost.busy.value > kLongestBusy)
        place().in(".busy").bad(std::to_string(cost.busy.value) + " ns", "0 to 52 days");
      if (!(cost.wire_factor >= 0 && cost.wire_factor * bytes_of(instructions[i]) <= kMostBytes))
        place().in(".wire_factor").bad(std::to_string(cost.wire_factor), "at least 0, with at most 1e14 bytes on the wire");
      if (!(cost.sm_share >= 0 && cost.sm_share <= 1)) place().in(".sm_share").bad(std::to_string(cost.sm_share), "0 to 1");
    }
  }
}

}  // namespace

void check_playable(const Plan& plan) {
  check_who(plan);
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i) check_instruction(plan, s, i);
  for (const Role& role : plan.roles) {
    check_role(plan, role);
    if (!find_costs(plan, role))
      Place("role '" + role.name + "'.device_kind").bad("'" + role.device_kind + "'", "a device kind with costs in the plan");
  }
  for (const CostTable& table : plan.costs) check_costs(plan, table);
}

void check_placed(const Plan& plan, const Ranks& ranks, const Network& network) {
  for (std::int32_t r = 0; r < ranks.count(); ++r) {
    const DeviceId device = ranks.device({r});
    if (device.value < 0 || device.value >= network.devices())
      Place("rank " + std::to_string(r))
          .bad("device " + std::to_string(device.value),
               "one of the " + std::to_string(network.devices()) + " devices of the cluster");
    const Role& role = plan.roles[ranks.role({r}).index()];
    const std::string& kind = network.node_shape(network.node(device)).gpu;
    if (kind != role.device_kind)
      Place("role '" + role.name + "'")
          .bad("rank " + std::to_string(r) + " on a device of kind '" + kind + "'", "'" + role.device_kind + "'");
  }
}

}  // namespace foreshard::player
