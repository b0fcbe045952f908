// Reads what plan_json_write.cpp writes, strictly; afterwards every index and range is checked once (core/plan/plan_indices.h).
#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/op/operation_json.h"
#include "core/plan/plan.h"
#include "core/plan/plan_indices.h"
#include "core/plan/plan_json_version1.h"
#include "core/plan/plan_words.h"

namespace foreshard {
namespace {

template <class Read>
struct Member {
  const char* name;
  Read read;
};
template <class Read>
Member(const char*, Read) -> Member<Read>;

// Reads the members that are there; any other key is an error with the nearest known name.
template <class... Read>
void members(const JsonReader& json, const Member<Read>&... known) {
  for (const auto& [key, value] : json.members()) {
    const bool hit = ((key == known.name ? (known.read(value), true) : false) || ...);
    if (!hit) json.only({known.name...});
  }
}

std::int32_t number(const JsonReader& json) { return static_cast<std::int32_t>(json.as_int(INT32_MIN, INT32_MAX)); }
std::int32_t index(const JsonReader& json) { return static_cast<std::int32_t>(json.as_int(-1, INT32_MAX)); }

auto into(std::string& to) {
  return [&to](const JsonReader& json) { to = json.as_string(); };
}
auto into(bool& to) {
  return [&to](const JsonReader& json) { to = json.as_bool(); };
}
auto into(std::int32_t& to) {
  return [&to](const JsonReader& json) { to = number(json); };
}
auto into(std::int64_t& to) {
  return [&to](const JsonReader& json) { to = json.as_int(); };
}
auto into(double& to) {
  return [&to](const JsonReader& json) { to = json.as_double(); };
}
auto into(Bytes& to) { return into(to.value); }
template <class Tag>
auto into(Id<Tag>& to) {
  return [&to](const JsonReader& json) { to = {index(json)}; };
}
template <class Enum>
requires std::is_enum_v<Enum>
auto into(Enum& to) {
  return [&to](const JsonReader& json) {
    const std::vector<std::string>& known = words<Enum>();
    const auto hit = std::find(known.begin(), known.end(), json.as_string());
    if (hit == known.end()) json.as_choice(known);  // throws
    to = static_cast<Enum>(hit - known.begin());
  };
}
template <class T>
auto into(std::vector<T>& to) {
  return [&to](const JsonReader& json) {
    to.clear();
    for (const JsonReader& element : json.elements()) {
      T one{};
      into(one)(element);
      to.push_back(std::move(one));
    }
  };
}
template <class T, class Read>
auto each(std::vector<T>& to, Read read) {
  return [&to, read](const JsonReader& json) {
    const std::size_t n = json.size();
    to.clear();
    to.reserve(n);
    for (std::size_t i = 0; i < n; ++i) to.push_back(read(json.at(i)));
  };
}

void sized(const JsonReader& json, std::size_t least, std::size_t most, const char* expected) {
  if (json.size() < least || json.size() > most) json.fail(expected);
}

Slot read_slot(const JsonReader& json) {
  if (json.is_number()) return {number(json)};
  const char* expected = "a slot: a number, or \"$2\" for parameter 2";
  if (!json.is_string()) json.fail(expected);
  const std::string& text = json.as_string();
  ParamId param;
  const char* end = text.data() + text.size();
  const bool dollar = text.size() > 1 && text[0] == '$' && text[1] >= '0' && text[1] <= '9';
  if (!dollar || std::from_chars(text.data() + 1, end, param.value).ptr != end || param.value < 0) json.fail(expected);
  return {param};
}

template <class T>
T read_slotted(const JsonReader& json) {  // Block, EventUse: [id] or [id, slot]
  sized(json, 1, 2, "[index] or [index, slot]");
  return T{{index(json.at(0))}, json.size() > 1 ? read_slot(json.at(1)) : Slot{}};
}

Use read_use(const JsonReader& json) {
  sized(json, 1, 4, "[buffer], [buffer, slot], [buffer, slot, from] or [buffer, slot, from, length]");
  Use use{.buffer = {index(json.at(0))}};
  if (json.size() > 1) use.slot = read_slot(json.at(1));
  if (json.size() > 2) use.from = {json.at(2).as_int()};
  if (json.size() > 3) use.length = Bytes{json.at(3).as_int()};
  return use;
}

Peer read_peer(const JsonReader& json) {
  if (json.size() != 1) sized(json, 3, 3, "[role shift], [role shift, axis, shift] or [role shift, [axis, ...], shift]");
  Peer peer{.role_shift = number(json.at(0))};
  if (json.size() == 1) return peer;
  if (json.at(1).is_array())
    for (std::size_t i = 0; i < json.at(1).size(); ++i) peer.axes.push_back({index(json.at(1).at(i))});
  else
    peer.axes = {AxisId{index(json.at(1))}};
  peer.shift = number(json.at(2));
  return peer;
}

Shape read_shape(const JsonReader& json) {
  Shape shape;
  sized(json, 1, 17, "[dtype, sizes ...]");
  into(shape.dtype)(json.at(0));
  for (std::size_t i = 1; i < json.size(); ++i) shape.dims.push_back(json.at(i).as_int());
  return shape;
}

// Members that another function reads.
void elsewhere(const JsonReader&) {}

Compute read_compute(const JsonReader& json, const version1::Attributes* old) {
  Compute what;
  json.at("op");
  if (old)
    old->read(json, what);
  else
    what.op = read_operation(json);
  members(json, Member{"op", elsewhere}, Member{old ? "attributes" : "settings", elsewhere}, Member{"phase", into(what.phase)},
          Member{"shapes", each(what.shapes, read_shape)}, Member{"flops", into(what.flops.value)},
          Member{"traffic", into(what.traffic)}, Member{"accumulate", into(what.accumulate)},
          Member{"accumulate_weights", into(what.accumulate_weights)},
          Member{"microbatch", [&](const JsonReader& v) { what.microbatch = ParamId{index(v)}; }},
          Member{"slice", into(what.slice)}, Member{"loss_scale", into(what.loss_scale)},
          Member{"dynamic_scale", into(what.dynamic_scale)});
  return what;
}
HostCompute read_host(const JsonReader& json, const version1::Attributes* old) {
  HostCompute what;
  json.at("op");
  if (old)
    old->read(json, what);
  else
    what.op = read_operation(json);
  members(json, Member{"op", elsewhere}, Member{old ? "attributes" : "settings", elsewhere},
          Member{"traffic", into(what.traffic)}, Member{"shapes", each(what.shapes, read_shape)},
          Member{"loss_scale", into(what.loss_scale)});
  return what;
}
Exchange read_exchange(const JsonReader& json) {
  Exchange what;
  members(json, Member{"to", [&](const JsonReader& v) { what.to = read_peer(v); }},
          Member{"from", [&](const JsonReader& v) { what.from = read_peer(v); }}, Member{"tag", into(what.tag)},
          Member{"bytes", into(what.bytes)}, Member{"slice", into(what.slice)});
  return what;
}
Collective read_collective(const JsonReader& json, const version1::Attributes* old) {
  Collective what;
  json.at("kind"), json.at("group");
  if (old) old->read(json, what);
  members(json, Member{"kind", into(what.kind)}, Member{"group", into(what.group)}, Member{"bytes", into(what.bytes)},
          Member{"algorithm", into(what.algorithm)}, Member{"dtype", into(what.dtype)},
          Member{old ? "attributes" : "combine", [&](const JsonReader& v) { old ? elsewhere(v) : into(what.combine)(v); }},
          Member{"accumulate", into(what.accumulate)}, Member{"slice", into(what.slice)}, Member{"servers", into(what.servers)},
          Member{"served_by", into(what.served_by)});
  return what;
}
Copy read_copy(const JsonReader& json) {
  Copy what;
  members(json, Member{"bytes", into(what.bytes)}, Member{"slice", into(what.slice)});
  return what;
}

Instruction read_instruction(const JsonReader& json, const version1::Attributes* old) {
  Instruction i;
  int kinds = 0;
  const auto what = [&](auto read) { return [&i, &kinds, read](const JsonReader& v) { i.what = read(v), ++kinds; }; };
  const auto compute = [old](const JsonReader& v) { return read_compute(v, old); };
  const auto host = [old](const JsonReader& v) { return read_host(v, old); };
  const auto collective = [old](const JsonReader& v) { return read_collective(v, old); };
  const auto mark = [](const JsonReader& v) { return members<>(v), Mark{}; };
  members(json, Member{"name", into(i.name)}, Member{"compute", what(compute)}, Member{"host_compute", what(host)},
          Member{"exchange", what(read_exchange)}, Member{"collective", what(collective)}, Member{"copy", what(read_copy)},
          Member{"mark", what(mark)}, Member{"stream", into(i.stream)}, Member{"layer", into(i.layer)},
          Member{"after", into(i.after)}, Member{"waits", each(i.waits, read_slotted<EventUse>)},
          Member{"records", each(i.records, read_slotted<EventUse>)}, Member{"reads", each(i.reads, read_use)},
          Member{"writes", each(i.writes, read_use)}, Member{"acquires", each(i.acquires, read_slotted<Block>)},
          Member{"releases", each(i.releases, read_slotted<Block>)});
  if (kinds != 1) json.fail("exactly one of compute, host_compute, exchange, collective, copy, mark");
  return i;
}

Segment read_segment(const JsonReader& json, const version1::Attributes* old) {
  Segment segment;
  const auto param = [](const JsonReader& v) {
    Param p;
    members(v, Member{"name", into(p.name)}, Member{"kind", into(p.kind)});
    return p;
  };
  members(json, Member{"name", into(segment.name)}, Member{"params", each(segment.params, param)},
          Member{"instructions", each(segment.instructions, [old](const JsonReader& v) { return read_instruction(v, old); })});
  return segment;
}

Shard read_shard(const JsonReader& json) {
  Shard s;
  json.at("tensor");
  members(json, Member{"tensor", into(s.tensor)}, Member{"part", into(s.part)}, Member{"dim", into(s.dim)},
          Member{"split_by", into(s.split_by)}, Member{"blocks", into(s.blocks)}, Member{"block_rows", into(s.block_rows)},
          Member{"flat_by", into(s.flat_by)}, Member{"at", into(s.at)});
  return s;
}

Buffer read_buffer(const JsonReader& json) {
  Buffer b;
  json.at("bytes");
  members(json, Member{"name", into(b.name)}, Member{"category", into(b.category)}, Member{"space", into(b.space)},
          Member{"scope", into(b.scope)}, Member{"dtype", into(b.dtype)}, Member{"bytes", into(b.bytes)},
          Member{"offsets", into(b.offsets)}, Member{"holds", each(b.holds, read_shard)}, Member{"resident", into(b.resident)});
  return b;
}

Action read_action(const JsonReader& json) {
  sized(json, 2, 64, "[segment, [arguments], [work, stage, micro-batch, version] ...]");
  Action action{.segment = {index(json.at(0))}};
  into(action.args)(json.at(1));
  for (std::size_t i = 2; i < json.size(); ++i) {
    const JsonReader one = json.at(i);
    sized(one, 4, 4, "[work, stage, micro-batch, version]");
    Does& does = action.does.emplace_back();
    into(does.work)(one.at(0));
    does.stage = number(one.at(1)), does.microbatch = number(one.at(2)), does.version = number(one.at(3));
  }
  return action;
}

Role read_role(const JsonReader& json) {
  Role role;
  const auto stream = [](const JsonReader& v) {
    Stream s;
    members(v, Member{"name", into(s.name)}, Member{"kind", into(s.kind)});
    return s;
  };
  const auto event = [](const JsonReader& v) {
    Event e;
    members(v, Member{"name", into(e.name)}, Member{"slots", into(e.slots)});
    return e;
  };
  members(json, Member{"name", into(role.name)}, Member{"device_kind", into(role.device_kind)}, Member{"axes", into(role.axes)},
          Member{"streams", each(role.streams, stream)}, Member{"events", each(role.events, event)},
          Member{"layers", into(role.layers)}, Member{"buffers", each(role.buffers, read_buffer)},
          Member{"actions", each(role.actions, read_action)}, Member{"ahead", into(role.ahead)});
  return role;
}

Cost read_cost(const JsonReader& json) {
  if (json.is_number()) return {.busy = {json.as_int(0)}};
  if (!json.is_array()) json.fail("nanoseconds, or [nanoseconds, wire factor, share of the compute units]");
  sized(json, 3, 3, "[nanoseconds, wire factor, share of the compute units]");
  return {.busy = {json.at(0).as_int(0)}, .wire_factor = json.at(1).as_double(0), .sm_share = json.at(2).as_double(0, 1)};
}

CostTable read_costs(const JsonReader& json) {
  CostTable table;
  const auto row = [](const JsonReader& v) {
    std::vector<Cost> costs;
    each(costs, read_cost)(v);
    return costs;
  };
  members(json, Member{"device_kind", into(table.device_kind)}, Member{"profile_hash", into(table.profile_hash)},
          Member{"by_segment", each(table.by_segment, row)});
  return table;
}

Axis read_axis(const JsonReader& json) {
  Axis axis{.size = 0};
  json.at("dense");
  members(json, Member{"name", into(axis.name)}, Member{"dense", into(axis.dense)}, Member{"expert", into(axis.expert)},
          Member{"size", into(axis.size)});
  return axis;
}
AxisId read_placed(const JsonReader& json) {
  if (json.is_string() && json.as_string() == "role") return Placement::kRole;
  if (!json.is_number()) json.fail("the number of an axis, or \"role\"");
  return {number(json)};
}
Group read_group(const JsonReader& json) {
  Group g;
  members(json, Member{"name", into(g.name)}, Member{"roles", into(g.roles)}, Member{"over", into(g.over)});
  return g;
}
Tensor read_tensor(const JsonReader& json) {
  Tensor t;
  members(json, Member{"name", into(t.name)}, Member{"shape", into(t.shape)}, Member{"dtype", into(t.dtype)},
          Member{"init", into(t.init)}, Member{"grid", into(t.grid)}, Member{"frozen", into(t.frozen)});
  return t;
}

Plan read_plan(const JsonReader& json) {
  Plan plan;
  std::string format;
  std::int32_t version = 0;
  if (!json.has("format")) json.fail("a plan file, with \"format\": \"foreshard plan\"");
  if (json.at("format").as_string() != "foreshard plan") json.at("format").fail("\"foreshard plan\"");
  const bool first = json.at("version").as_int(1, Plan::kVersion) == 1;  // read first: other members depend on it
  const std::optional<version1::Attributes> attributes = first ? std::optional<version1::Attributes>(json) : std::nullopt;
  const version1::Attributes* old = attributes ? &*attributes : nullptr;
  const auto placement = [&](const JsonReader& v) {
    const auto order = [&](const JsonReader& list) {
      std::vector<Axis> axes;  // they may stand behind the placement
      if (const auto named = json.find("axes"); named && old) each(axes, version1::read_axis)(*named);
      if (old) plan.placement.order = version1::read_order(list, axes);
      if (!old) each(plan.placement.order, read_placed)(list);
    };
    members(v, Member{"order", order}, Member{"explicit_devices", into(plan.placement.explicit_devices)});
  };
  members(json, Member{"format", into(format)}, Member{"version", into(version)}, Member{"origin", into(plan.origin)},
          Member{"samples", into(plan.samples)}, Member{"updates", into(plan.updates)}, Member{"stages", into(plan.stages)},
          Member{"microbatches", into(plan.microbatches)}, Member{"framework", into(plan.framework)},
          Member{"reserve", into(plan.reserve)}, Member{"axes", each(plan.axes, old ? version1::read_axis : read_axis)},
          Member{"groups", each(plan.groups, read_group)}, Member{"tensors", each(plan.tensors, read_tensor)},
          Member{"segments", each(plan.segments, [old](const JsonReader& v) { return read_segment(v, old); })},
          Member{"roles", each(plan.roles, read_role)}, Member{"placement", placement},
          Member{"costs", each(plan.costs, read_costs)});
  return plan;
}

}  // namespace

Plan plan_from(const JsonReader& json) {
  Plan plan = read_plan(json);
  if (const std::optional<PlanProblem> bad = first_bad_index(plan)) {
    const std::string path = json.path().empty() ? bad->path : json.path() + "." + bad->path;
    throw Error(json.file(), path, bad->found, bad->expected);
  }
  return plan;
}

Plan parse_plan(const std::string& text, const std::string& file_name) { return plan_from(JsonReader::parse(text, file_name)); }

Plan load_plan(const std::string& path) { return parse_plan(read_file(path), path); }

}  // namespace foreshard
