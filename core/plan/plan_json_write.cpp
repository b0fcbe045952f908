// A plan as JSON: docs/plan-format.md. One line per instruction, buffer and action; members at their defaults are left out.
#include "core/json/json.h"
#include "core/op/operation_json.h"
#include "core/plan/plan.h"
#include "core/plan/plan_words.h"

namespace foreshard {
namespace {

// Writes a member only when it is not at its default.
class Line {
 public:
  Line() : json_(0) { json_.begin_object(); }
  std::string text() { return json_.end_object().text(); }
  JsonWriter& json() { return json_; }

  Line& text_of(const char* name, const std::string& value) {
    if (!value.empty()) json_.field(name, value);
    return *this;
  }
  Line& number(const char* name, std::int64_t value, std::int64_t usual = 0) {
    if (value != usual) json_.field(name, value);
    return *this;
  }
  Line& flag(const char* name, bool value) {
    if (value) json_.field(name, true);
    return *this;
  }
  template <class Enum>
  Line& one(const char* name, Enum value, Enum usual) {
    if (value != usual) json_.field(name, word(value));
    return *this;
  }
  template <class T, class Write>
  Line& list(const char* name, const std::vector<T>& values, Write write) {
    if (values.empty()) return *this;
    json_.key(name).begin_array();
    for (const T& value : values) write(value);
    json_.end_array();
    return *this;
  }
  template <class Tag>
  Line& ids(const char* name, const std::vector<Id<Tag>>& values) {
    return list(name, values, [&](Id<Tag> id) { json_.value(id.value); });
  }
  Line& numbers(const char* name, const std::vector<std::int64_t>& values) {
    return list(name, values, [&](std::int64_t n) { json_.value(n); });
  }

 private:
  JsonWriter json_;
};

void write(JsonWriter& json, const Slot& slot) {
  if (const auto* number = std::get_if<std::int32_t>(&slot.which))
    json.value(*number);
  else
    json.value("$" + std::to_string(std::get<ParamId>(slot.which).value));
}
bool usual(const Slot& slot) { return slot == Slot{}; }

void write(JsonWriter& json, std::int32_t id, const Slot& slot) {  // of a block or an event
  json.begin_array().value(id);
  if (!usual(slot)) write(json, slot);
  json.end_array();
}
void write(JsonWriter& json, const Use& use) {
  const bool range = use.from.value != 0 || use.length.has_value();
  json.begin_array().value(use.buffer.value);
  if (range || !usual(use.slot)) write(json, use.slot);
  if (range) json.value(use.from.value);
  if (use.length) json.value(use.length->value);
  json.end_array();
}
void write(JsonWriter& json, const char* name, const std::optional<Peer>& peer) {
  if (!peer) return;
  json.key(name).begin_array().value(peer->role_shift);
  if (peer->axes.size() == 1) {
    json.value(peer->axes.front().value);
  } else if (!peer->axes.empty()) {
    json.begin_array();
    for (const AxisId axis : peer->axes) json.value(axis.value);
    json.end_array();
  }
  if (!peer->axes.empty()) json.value(peer->shift);
  json.end_array();
}

void write_shapes(Line& line, const std::vector<Shape>& shapes) {
  line.list("shapes", shapes, [&](const Shape& shape) {
    line.json().begin_array().value(word(shape.dtype));
    for (const std::int64_t n : shape.dims) line.json().value(n);
    line.json().end_array();
  });
}

struct WriteWhat {
  Line& line;
  void operator()(const Compute& what) const {
    Line inner;
    write_operation(inner.json(), what.op);
    inner.one("phase", what.phase, Phase::Forward);
    write_shapes(inner, what.shapes);
    if (what.flops.value != 0) inner.json().field("flops", what.flops.value);
    inner.number("traffic", what.traffic.value).flag("accumulate", what.accumulate);
    inner.flag("accumulate_weights", what.accumulate_weights);
    if (what.microbatch) inner.json().field("microbatch", what.microbatch->value);
    inner.number("slice", what.slice.value, -1);
    if (what.loss_scale != 1) inner.json().field("loss_scale", what.loss_scale);
    inner.flag("dynamic_scale", what.dynamic_scale);
    line.json().key("compute").raw(inner.text());
  }
  void operator()(const HostCompute& what) const {
    Line inner;
    write_operation(inner.json(), what.op);
    inner.number("traffic", what.traffic.value);
    write_shapes(inner, what.shapes);
    if (what.loss_scale != 1) inner.json().field("loss_scale", what.loss_scale);
    line.json().key("host_compute").raw(inner.text());
  }
  void operator()(const Exchange& what) const {
    Line inner;
    write(inner.json(), "to", what.to);
    write(inner.json(), "from", what.from);
    inner.text_of("tag", what.tag).number("bytes", what.bytes.value).number("slice", what.slice.value, -1);
    line.json().key("exchange").raw(inner.text());
  }
  void operator()(const Collective& what) const {
    Line inner;
    inner.json().field("kind", word(what.kind)).field("group", what.group.value).field("bytes", what.bytes.value);
    inner.one("algorithm", what.algorithm, Algorithm::Ring).one("dtype", what.dtype, DType::BF16);
    inner.one("combine", what.combine, Combine::Sum).flag("accumulate", what.accumulate);
    inner.number("slice", what.slice.value, -1).number("servers", what.servers, 1);
    inner.list("served_by", what.served_by, [&](std::int32_t member) { inner.json().value(member); });
    line.json().key("collective").raw(inner.text());
  }
  void operator()(const Copy& what) const {
    Line inner;
    inner.json().field("bytes", what.bytes.value);
    inner.number("slice", what.slice.value, -1);
    line.json().key("copy").raw(inner.text());
  }
  void operator()(const Mark&) const { line.json().key("mark").begin_object().end_object(); }
};

std::string line_of(const Instruction& instruction) {
  Line line;
  line.text_of("name", instruction.name);
  std::visit(WriteWhat{line}, instruction.what);
  line.json().field("stream", instruction.stream.value);
  line.number("layer", instruction.layer.value, -1);
  line.list("after", instruction.after, [&](std::int32_t i) { line.json().value(i); });
  const auto event = [&](const EventUse& use) { write(line.json(), use.event.value, use.slot); };
  const auto block = [&](const Block& block) { write(line.json(), block.buffer.value, block.slot); };
  const auto use = [&](const Use& use) { write(line.json(), use); };
  line.list("waits", instruction.waits, event).list("records", instruction.records, event);
  line.list("reads", instruction.reads, use).list("writes", instruction.writes, use);
  line.list("acquires", instruction.acquires, block).list("releases", instruction.releases, block);
  return line.text();
}

std::string line_of(const Shard& shard) {
  Line line;
  line.json().field("tensor", shard.tensor.value);
  line.one("part", shard.part, TensorPart::Value).number("dim", shard.dim).ids("split_by", shard.split_by);
  line.number("blocks", shard.blocks, 1)
      .numbers("block_rows", shard.block_rows)
      .ids("flat_by", shard.flat_by)
      .number("at", shard.at.value);
  return line.text();
}

std::string line_of(const Buffer& buffer) {
  Line line;
  line.text_of("name", buffer.name).one("category", buffer.category, Category::Transient);
  line.one("space", buffer.space, Space::Device)
      .one("scope", buffer.scope, Scope::Rank)
      .one("dtype", buffer.dtype, DType::BF16);
  line.json().field("bytes", buffer.bytes.value);
  line.list("offsets", buffer.offsets, [&](Bytes offset) { line.json().value(offset.value); });
  line.list("holds", buffer.holds, [&](const Shard& shard) { line.json().raw(line_of(shard)); });
  return line.flag("resident", buffer.resident).text();
}

std::string line_of(const Action& action) {
  JsonWriter json(0);
  json.begin_array().value(action.segment.value).begin_array();
  for (const std::int32_t arg : action.args) json.value(arg);
  json.end_array();
  for (const Does& does : action.does)
    json.begin_array().value(word(does.work)).value(does.stage).value(does.microbatch).value(does.version).end_array();
  return json.end_array().text();
}

std::string line_of(const std::vector<Cost>& costs) {
  JsonWriter json(0);
  json.begin_array();
  for (const Cost& cost : costs) {
    if (cost == Cost{.busy = cost.busy})
      json.value(cost.busy.value);
    else
      json.begin_array().value(cost.busy.value).value(cost.wire_factor).value(cost.sm_share).end_array();
  }
  return json.end_array().text();
}

template <class T, class Write>
void lines(JsonWriter& json, const char* name, const std::vector<T>& values, Write write) {
  if (values.empty()) return;
  json.key(name).begin_array();
  for (const T& value : values) json.raw(write(value));
  json.end_array();
}
void texts(JsonWriter& json, const char* name, const std::vector<std::string>& values) {
  if (values.empty()) return;
  json.key(name).begin_line_array();
  for (const std::string& value : values) json.value(value);
  json.end_array();
}

void write(JsonWriter& json, const Segment& segment) {
  json.begin_object().field("name", segment.name);
  lines(json, "params", segment.params,
        [](const Param& param) { return Line().text_of("name", param.name).one("kind", param.kind, ParamKind::Slot).text(); });
  lines(json, "instructions", segment.instructions, [](const Instruction& i) { return line_of(i); });
  json.end_object();
}

void write(JsonWriter& json, const Role& role) {
  json.begin_object().field("name", role.name).field("device_kind", role.device_kind);
  json.key("axes").begin_line_array();
  for (const AxisId axis : role.axes) json.value(axis.value);
  json.end_array();
  lines(json, "streams", role.streams, [](const Stream& stream) {
    return Line().text_of("name", stream.name).one("kind", stream.kind, StreamKind::Compute).text();
  });
  lines(json, "events", role.events,
        [](const Event& event) { return Line().text_of("name", event.name).number("slots", event.slots, 1).text(); });
  texts(json, "layers", role.layers);
  lines(json, "buffers", role.buffers, [](const Buffer& b) { return line_of(b); });
  lines(json, "actions", role.actions, [](const Action& a) { return line_of(a); });
  if (!role.ahead.empty()) {
    json.key("ahead").begin_line_array();
    for (const std::int32_t action : role.ahead) json.value(action);
    json.end_array();
  }
  json.end_object();
}

void write(JsonWriter& json, const Placement& placement) {
  json.key("placement").begin_object();
  if (!placement.order.empty()) {
    json.key("order").begin_line_array();
    for (const AxisId axis : placement.order) axis == Placement::kRole ? json.value("role") : json.value(axis.value);
    json.end_array();
  }
  if (!placement.explicit_devices.empty()) {
    json.key("explicit_devices").begin_line_array();
    for (const DeviceId device : placement.explicit_devices) json.value(device.value);
    json.end_array();
  }
  json.end_object();
}

}  // namespace

std::string to_json(const Plan& plan) {
  JsonWriter json;
  json.begin_object().field("format", "foreshard plan").field("version", plan.version);
  if (!plan.origin.empty()) json.field("origin", plan.origin);
  json.field("samples", plan.samples).field("updates", plan.updates);
  json.field("stages", plan.stages).field("microbatches", plan.microbatches);
  json.field("framework", plan.framework.value).field("reserve", plan.reserve.value);
  lines(json, "axes", plan.axes, [](const Axis& axis) {
    Line line;
    line.text_of("name", axis.name).json().field("dense", word(axis.dense));
    return line.one("expert", axis.expert, ExpertKind::ExpertData).number("size", axis.size, 0).text();
  });
  lines(json, "groups", plan.groups, [](const Group& group) {
    return Line().text_of("name", group.name).ids("roles", group.roles).ids("over", group.over).text();
  });
  lines(json, "tensors", plan.tensors, [](const Tensor& tensor) {
    Line line;
    line.text_of("name", tensor.name).numbers("shape", tensor.shape).one("dtype", tensor.dtype, DType::F32);
    return line.text_of("init", tensor.init).one("grid", tensor.grid, Grid::Dense).flag("frozen", tensor.frozen).text();
  });
  const auto objects = [&](const char* name, const auto& values) {
    json.key(name).begin_array();
    for (const auto& value : values) write(json, value);
    json.end_array();
  };
  objects("segments", plan.segments);
  objects("roles", plan.roles);
  write(json, plan.placement);
  json.key("costs").begin_array();
  for (const CostTable& table : plan.costs) {
    json.begin_object().field("device_kind", table.device_kind).field("profile_hash", table.profile_hash);
    lines(json, "by_segment", table.by_segment, [](const std::vector<Cost>& costs) { return line_of(costs); });
    json.end_object();
  }
  return json.end_array().end_object().text();
}

void save_plan(const Plan& plan, const std::string& path) { write_file(path, to_json(plan)); }

}  // namespace foreshard
