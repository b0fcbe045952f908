#include "core/plan/plan_indices.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

namespace foreshard {
namespace {

// The path of the value being checked, as a linked list on the stack. Its text is built only for a problem.
struct Where {
  const Where* parent = nullptr;
  std::string_view name = {};
  std::int64_t index = -1;
  std::string text() const {
    std::string path = parent ? parent->text() : "";
    if (!path.empty() && !name.empty()) path += ".";
    path += name;
    if (index >= 0) path += "[" + std::to_string(index) + "]";
    return path;
  }
};
struct Wrong {
  PlanProblem problem;
};

std::string count_text(std::int64_t least, std::int64_t most) {
  if (most < least) return "none here: there is nothing to refer to";
  return "an integer from " + std::to_string(least) + " to " + std::to_string(most);
}

void in_range(std::int64_t value, std::int64_t least, std::int64_t most, const Where& where) {
  if (value < least || value > most) throw Wrong{{where.text(), std::to_string(value), count_text(least, most)}};
}
template <class Tag, class T>
void refers(Id<Tag> id, const std::vector<T>& owner, const Where& where) {
  in_range(id.value, 0, static_cast<std::int64_t>(owner.size()) - 1, where);
}
void number(double value, const Where& where) {
  if (!(value >= 0 && value <= 1e300)) throw Wrong{{where.text(), std::to_string(value), "a finite number of at least 0"}};
}
void bytes(Bytes value, const Where& where) { in_range(value.value, 0, kMostBytes, where); }
void same_size(std::size_t found, std::size_t expected, const char* what, const Where& where) {
  if (found != expected)
    throw Wrong{{where.text(), std::to_string(found) + " entries", std::to_string(expected) + ", one per " + what}};
}
template <class T>
void distinct(const std::vector<T>& list, const Where& where) {
  std::vector<T> sorted = list;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw Wrong{{where.text(), "the same entry twice", "each entry once"}};
}
template <class T, class F>
void each(const std::vector<T>& list, const Where& parent, std::string_view name, F check) {
  for (std::size_t i = 0; i < list.size(); ++i) check(list[i], Where{&parent, name, static_cast<std::int64_t>(i)});
}

void check_axes(const Plan& plan, const Where& top) {
  each(plan.axes, top, "axes", [&](const Axis& axis, const Where& at) {
    in_range(axis.size, 1, kMostRanks, {&at, "size"});
    if (axis.name.empty()) throw Wrong{{Where{&at, "name"}.text(), "\"\"", "a name"}};
  });
  if (plan.placement.order.empty()) return;
  const auto last = static_cast<std::int32_t>(plan.axes.size()) - 1;
  std::vector<AxisId> left;
  for (std::int32_t axis = 0; axis <= last; ++axis) left.push_back({axis});
  left.push_back(Placement::kRole);
  const auto shown = [](AxisId axis) { return axis == Placement::kRole ? "\"role\"" : std::to_string(axis.value); };
  std::string expected = "each of ";
  if (last > 8)
    expected += "0 to " + std::to_string(last) + ", \"role\" once";
  else
    for (const AxisId axis : left) expected += shown(axis) + (axis == Placement::kRole ? " once" : ", ");
  expected += ", fastest first";
  each(plan.placement.order, top, "placement.order", [&](AxisId axis, const Where& at) {
    if (std::erase(left, axis) == 0) throw Wrong{{at.text(), shown(axis), expected}};
  });
  if (!left.empty()) throw Wrong{{Where{&top, "placement.order"}.text(), "no " + shown(left.front()), expected}};
}

void check_ranks(const Plan& plan, const Where& top) {
  std::int64_t all = 0;
  each(plan.roles, top, "roles", [&](const Role& role, const Where& at) {
    each(role.axes, at, "axes", [&](AxisId axis, const Where& where) { refers(axis, plan.axes, where); });
    distinct(role.axes, {&at, "axes"});
    std::int64_t ranks = 1;
    for (const AxisId axis : role.axes) ranks = std::min(kMostRanks + 1, ranks * plan.axes[axis.index()].size);
    all += ranks;
    if (all > kMostRanks)
      throw Wrong{{at.text(), "more ranks than a plan may have", "at most " + std::to_string(kMostRanks) + " in all"}};
  });
  if (static_cast<std::int64_t>(plan.placement.explicit_devices.size()) > all)
    same_size(plan.placement.explicit_devices.size(), static_cast<std::size_t>(all), "rank",
              {&top, "placement.explicit_devices"});
  each(plan.placement.explicit_devices, top, "placement.explicit_devices",
       [&](DeviceId device, const Where& at) { in_range(device.value, -1, kMostRanks, at); });
  each(plan.groups, top, "groups", [&](const Group& group, const Where& at) {
    each(group.roles, at, "roles", [&](RoleId role, const Where& where) { refers(role, plan.roles, where); });
    each(group.over, at, "over", [&](AxisId axis, const Where& where) { refers(axis, plan.axes, where); });
    distinct(group.roles, {&at, "roles"});
    distinct(group.over, {&at, "over"});
  });
  if (plan.samples / plan.microbatches > std::max<std::int64_t>(all, 1) * kMostSamples)
    throw Wrong{{Where{&top, "samples"}.text(), std::to_string(plan.samples),
                 "at most " + std::to_string(kMostSamples) + " per micro-batch and rank, of which there are " +
                     std::to_string(plan.microbatches) + " and " + std::to_string(all)}};
}

void check_dims(const std::vector<std::int64_t>& dims, const Where& parent, std::string_view name) {
  std::int64_t product = 1;
  in_range(static_cast<std::int64_t>(dims.size()), 0, 16, {&parent, name});
  each(dims, parent, name, [&](std::int64_t n, const Where& at) {
    in_range(n, 0, kMostBytes / product, at);
    product *= std::max<std::int64_t>(n, 1);
  });
}

void check_param(ParamId id, ParamKind kind, const Segment& segment, const Where& where) {
  refers(id, segment.params, where);
  if (segment.params[id.index()].kind != kind)
    throw Wrong{{where.text(), "parameter " + std::to_string(id.value),
                 kind == ParamKind::Slot ? "a parameter of kind slot" : "a parameter of kind microbatch"}};
}
void check_slot(const Slot& slot, const Segment& segment, const Where& where) {
  if (const auto* number = std::get_if<std::int32_t>(&slot.which)) return in_range(*number, 0, INT32_MAX, where);
  check_param(std::get<ParamId>(slot.which), ParamKind::Slot, segment, where);
}
void check_peer(const std::optional<Peer>& peer, const Plan& plan, const Where& where) {
  if (!peer) return;
  const auto roles = static_cast<std::int64_t>(plan.roles.size());
  in_range(peer->role_shift, -roles, roles, {&where, "role_shift"});
  for (const AxisId axis : peer->axes)
    in_range(axis.value, 0, static_cast<std::int64_t>(plan.axes.size()) - 1, {&where, "axis"});
  in_range(peer->shift, -kMostRanks, kMostRanks, {&where, "shift"});
}

struct CheckWhat {
  const Plan& plan;
  const Segment& segment;
  const Where& at;
  void operator()(const Compute& what) const {
    shapes(what.shapes);
    number(what.flops.value, {&at, "flops"});
    bytes(what.traffic, {&at, "traffic"});
    if (what.microbatch) check_param(*what.microbatch, ParamKind::Microbatch, segment, {&at, "microbatch"});
    if (what.slice.valid()) refers(what.slice, plan.groups, {&at, "slice"});
    loss_scale(what.loss_scale);
  }
  void operator()(const HostCompute& what) const {
    shapes(what.shapes);
    bytes(what.traffic, {&at, "traffic"});
    loss_scale(what.loss_scale);
  }
  void operator()(const Exchange& what) const {
    check_peer(what.to, plan, {&at, "to"});
    check_peer(what.from, plan, {&at, "from"});
    bytes(what.bytes, {&at, "bytes"});
    if (what.slice.valid()) refers(what.slice, plan.groups, {&at, "slice"});
  }
  void operator()(const Collective& what) const {
    refers(what.group, plan.groups, {&at, "group"});
    bytes(what.bytes, {&at, "bytes"});
    if (what.slice.valid()) refers(what.slice, plan.groups, {&at, "slice"});
    in_range(what.servers, 1, 1 << 22, {&at, "servers"});
    served_by(what);
  }
  void operator()(const Copy& what) const {
    bytes(what.bytes, {&at, "bytes"});
    if (what.slice.valid()) refers(what.slice, plan.groups, {&at, "slice"});
  }
  void operator()(const Mark&) const {}

 private:
  void shapes(const std::vector<Shape>& list) const {
    each(list, at, "shapes", [](const Shape& shape, const Where& where) { check_dims(shape.dims, where, "dims"); });
  }
  void served_by(const Collective& what) const {
    if (what.served_by.empty()) return;
    std::vector<std::int32_t> rising = what.served_by;
    std::ranges::sort(rising);
    for (const std::int32_t member : rising) in_range(member, 0, (1 << 22) - 1, {&at, "served_by"});
    if (what.algorithm != Algorithm::ParameterServer || std::ssize(rising) != what.servers ||
        std::ranges::adjacent_find(rising) != rising.end())
      throw Wrong{{Where{&at, "served_by"}.text(), std::to_string(what.served_by.size()) + " positions",
                   "a position for each of the " + std::to_string(what.servers) +
                       " servers of the algorithm parameter_server, each one once"}};
  }
  void loss_scale(double scale) const {
    if (!(scale > 0 && scale <= 1e300))
      throw Wrong{{Where{&at, "loss_scale"}.text(), std::to_string(scale), "a positive number"}};
  }
};

// Calls event(use, where) for the events of an instruction, range for what it reads and writes, block for what it acquires and releases.
template <class Event, class Range, class Block>
void each_use(const Instruction& instruction, const Where& at, Event&& event, Range&& range, Block&& block) {
  each(instruction.waits, at, "waits", event);
  each(instruction.records, at, "records", event);
  each(instruction.reads, at, "reads", range);
  each(instruction.writes, at, "writes", range);
  each(instruction.acquires, at, "acquires", block);
  each(instruction.releases, at, "releases", block);
}

void check_segment(const Plan& plan, const Segment& segment, const Where& top) {
  std::int64_t index = 0;
  each(segment.instructions, top, "instructions", [&](const Instruction& instruction, const Where& at) {
    std::visit(CheckWhat{plan, segment, at}, instruction.what);
    in_range(instruction.stream.value, 0, static_cast<std::int64_t>(kMostStreams) - 1, {&at, "stream"});
    in_range(instruction.layer.value, -1, INT32_MAX, {&at, "layer"});
    each(instruction.after, at, "after", [&](std::int32_t i, const Where& where) { in_range(i, 0, index - 1, where); });
    const auto slot = [&](const auto& use, const Where& where) { check_slot(use.slot, segment, {&where, "slot"}); };
    each_use(instruction, at, slot, slot, slot);
    ++index;
  });
}

void check_buffer(const Plan& plan, const Buffer& buffer, const Where& at) {
  bytes(buffer.bytes, {&at, "bytes"});
  in_range(static_cast<std::int64_t>(buffer.offsets.size()), 1, INT32_MAX, {&at, "offsets"});
  each(buffer.offsets, at, "offsets", [](Bytes offset, const Where& where) { bytes(offset, where); });
  each(buffer.holds, at, "holds", [&](const Shard& shard, const Where& where) {
    refers(shard.tensor, plan.tensors, {&where, "tensor"});
    const auto dims = static_cast<std::int64_t>(plan.tensors[shard.tensor.index()].shape.size());
    in_range(shard.dim, 0, std::max<std::int64_t>(dims, 1) - 1, {&where, "dim"});
    in_range(shard.blocks, 1, kMostBytes, {&where, "blocks"});
    const auto unequal = static_cast<std::int64_t>(shard.block_rows.size());
    if (unequal > 0) in_range(unequal, shard.blocks, shard.blocks, {&where, "block_rows"});
    each(shard.block_rows, where, "block_rows", [](std::int64_t rows, const Where& w) { in_range(rows, 1, kMostBytes, w); });
    bytes(shard.at, {&where, "at"});
    const auto axis = [&](AxisId id, const Where& w) { refers(id, plan.axes, w); };
    each(shard.split_by, where, "split_by", axis);
    each(shard.flat_by, where, "flat_by", axis);
    distinct(shard.split_by, {&where, "split_by"});
    distinct(shard.flat_by, {&where, "flat_by"});
  });
}

// Checks the requirements of a segment on a role that runs it, and on its arguments, once per (role, segment).
class RoleCheck {
 public:
  RoleCheck(const Plan& plan, const Role& role) : plan_(plan), role_(role), limits_(plan.segments.size()) {}

  void action(const Action& action, const Where& at) {
    refers(action.segment, plan_.segments, {&at, "segment"});
    const Segment& segment = plan_.segments[action.segment.index()];
    std::optional<std::vector<std::int64_t>>& limits = limits_[action.segment.index()];
    if (!limits) try {
        limits = limits_of(segment, {nullptr, "segments", action.segment.value});
      } catch (Wrong& wrong) {
        wrong.problem.expected += " in " + at.text();  // the segment may suit other roles
        throw;
      }
    same_size(action.args.size(), segment.params.size(), "parameter of the segment", {&at, "args"});
    for (std::size_t p = 0; p < action.args.size(); ++p) {
      const Where where_args{&at, "args", static_cast<std::int64_t>(p)};
      const bool slot = segment.params[p].kind == ParamKind::Slot;
      in_range(action.args[p], 0, slot ? (*limits)[p] - 1 : std::int64_t{plan_.microbatches} - 1, where_args);
    }
    each(action.does, at, "does", [&](const Does& does, const Where& where) {
      in_range(does.stage, 0, std::int64_t{plan_.stages} - 1, {&where, "stage"});
      in_range(does.microbatch, -1, std::int64_t{plan_.microbatches} - 1, {&where, "microbatch"});
      in_range(does.version, -1, INT32_MAX, {&where, "version"});
    });
  }

 private:
  // For each parameter, the smallest number of slots among the buffers and events whose slot it selects.
  std::vector<std::int64_t> limits_of(const Segment& segment, const Where& where) {
    std::vector<std::int64_t> limits(segment.params.size(), INT32_MAX);
    const auto slot = [&](const Slot& chosen, std::int64_t slots, const Where& at) {
      if (const auto* number = std::get_if<std::int32_t>(&chosen.which)) return in_range(*number, 0, slots - 1, {&at, "slot"});
      std::int64_t& limit = limits[std::get<ParamId>(chosen.which).index()];
      limit = std::min(limit, slots);
    };
    const auto event = [&](const EventUse& use, const Where& at) {
      refers(use.event, role_.events, {&at, "event"});
      slot(use.slot, role_.events[use.event.index()].slots, at);
    };
    const auto block = [&](const auto& use, const Where& at) {
      refers(use.buffer, role_.buffers, {&at, "buffer"});
      slot(use.slot, static_cast<std::int64_t>(role_.buffers[use.buffer.index()].offsets.size()), at);
    };
    const auto range = [&](const Use& use, const Where& at) {
      block(use, at);
      const std::int64_t size = role_.buffers[use.buffer.index()].bytes.value;
      in_range(use.from.value, 0, size, {&at, "from"});
      if (use.length) in_range(use.length->value, 0, size - use.from.value, {&at, "length"});
    };
    each(segment.instructions, where, "instructions", [&](const Instruction& instruction, const Where& at) {
      refers(instruction.stream, role_.streams, {&at, "stream"});
      in_range(instruction.layer.value, -1, static_cast<std::int64_t>(role_.layers.size()) - 1, {&at, "layer"});
      each_use(instruction, at, event, range, block);
    });
    return limits;
  }

  const Plan& plan_;
  const Role& role_;
  std::vector<std::optional<std::vector<std::int64_t>>> limits_;  // [segment][parameter]
};

void check_role(const Plan& plan, const Role& role, const Where& at, std::int64_t& steps) {
  in_range(static_cast<std::int64_t>(role.streams.size()), 0, static_cast<std::int64_t>(kMostStreams), {&at, "streams"});
  each(role.events, at, "events", [](const Event& event, const Where& where) {
    in_range(event.slots, 1, 1 << 20, {&where, "slots"});
  });
  each(role.buffers, at, "buffers", [&](const Buffer& buffer, const Where& where) { check_buffer(plan, buffer, where); });
  RoleCheck check(plan, role);
  each(role.actions, at, "actions", [&](const Action& action, const Where& where) {
    check.action(action, where);
    steps += static_cast<std::int64_t>(plan.segments[action.segment.index()].instructions.size());
    if (steps > kMostSteps)
      throw Wrong{{where.text(), "more instructions than a run may have", "at most " + std::to_string(kMostSteps)}};
  });
  const auto actions = static_cast<std::int64_t>(role.actions.size()), early = static_cast<std::int64_t>(role.ahead.size());
  in_range(early, 0, actions, {&at, "ahead"});
  std::int64_t least = early;
  each(role.ahead, at, "ahead", [&](std::int32_t action, const Where& where) {
    in_range(action, least, actions - 1, where);
    least = action;
  });
}

void check_costs(const Plan& plan, const Where& top) {
  std::vector<std::string> kinds;
  each(plan.costs, top, "costs", [&](const CostTable& table, const Where& at) {
    kinds.push_back(table.device_kind);
    same_size(table.by_segment.size(), plan.segments.size(), "segment", {&at, "by_segment"});
    std::size_t s = 0;
    each(table.by_segment, at, "by_segment", [&](const std::vector<Cost>& costs, const Where& where) {
      same_size(costs.size(), plan.segments[s++].instructions.size(), "instruction", where);
      for (std::size_t i = 0; i < costs.size(); ++i) {
        const Where one{&where, "", static_cast<std::int64_t>(i)};
        in_range(costs[i].busy.value, 0, kMostBytes, {&one, "busy"});
        number(costs[i].wire_factor, {&one, "wire_factor"});
        number(costs[i].sm_share, {&one, "sm_share"});
        if (costs[i].sm_share > 1)
          throw Wrong{{Where{&one, "sm_share"}.text(), std::to_string(costs[i].sm_share), "at most 1"}};
      }
    });
  });
  distinct(kinds, {&top, "costs"});
  each(plan.roles, top, "roles", [&](const Role& role, const Where& at) {
    if (!kinds.empty() && std::find(kinds.begin(), kinds.end(), role.device_kind) == kinds.end())
      throw Wrong{{Where{&at, "device_kind"}.text(), "\"" + role.device_kind + "\"", "a device kind that has a cost table"}};
  });
}

void check_all(const Plan& plan) {
  const Where top;
  in_range(plan.version, Plan::kVersion, Plan::kVersion, {&top, "version"});
  in_range(plan.updates, 1, INT32_MAX, {&top, "updates"});
  in_range(plan.stages, 1, 1 << 20, {&top, "stages"});
  in_range(plan.microbatches, 1, 1 << 24, {&top, "microbatches"});
  if ((!plan.roles.empty() && plan.samples < plan.microbatches) || plan.samples < 0 || plan.samples > kMostBytes)
    throw Wrong{{"samples", std::to_string(plan.samples),
                 "at least one per micro-batch: " + count_text(plan.microbatches, kMostBytes)}};
  bytes(plan.framework, {&top, "framework"});
  bytes(plan.reserve, {&top, "reserve"});
  check_axes(plan, top);
  check_ranks(plan, top);
  each(plan.tensors, top, "tensors", [](const Tensor& tensor, const Where& at) { check_dims(tensor.shape, at, "shape"); });
  each(plan.segments, top, "segments", [&](const Segment& segment, const Where& at) { check_segment(plan, segment, at); });
  std::int64_t steps = 0;
  each(plan.roles, top, "roles", [&](const Role& role, const Where& at) { check_role(plan, role, at, steps); });
  check_costs(plan, top);
}

}  // namespace

std::optional<PlanProblem> first_bad_index(const Plan& plan) {
  try {
    check_all(plan);
  } catch (const Wrong& wrong) {
    return wrong.problem;
  }
  return std::nullopt;
}

}  // namespace foreshard
