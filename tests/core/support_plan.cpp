#include "tests/core/support_plan.h"

#include <stdexcept>

namespace foreshard {
namespace {

constexpr StreamId kCompute{0}, kReceive{1}, kSend{2}, kReduce{3};
constexpr ParamId kMicrobatch{0}, kSlot{1};

// Buffers of both roles, in this order; stage 0 has no `input`, stage 1 no `output_gradient`: they stay unused there.
enum : std::int32_t { Weight, Gradient, Momentum, Saved, Output, Incoming, ForwardSpace, BackwardSpace };
// Events of both roles.
enum : std::int32_t { Freed, Sent, BackwardDone };

Use use(std::int32_t buffer, Slot slot = {}) { return Use{.buffer = {buffer}, .slot = slot}; }
Block block(std::int32_t buffer, Slot slot = {}) { return Block{.buffer = {buffer}, .slot = slot}; }
EventUse event(std::int32_t e, Slot slot = {}) { return EventUse{.event = {e}, .slot = slot}; }
const Slot at_slot{kSlot};

// `Saved`, `Output` and `Incoming` hold 512 bytes per micro-batch.
Instruction receive(std::int32_t role_shift) {
  return Instruction{.name = "receive",
                     .what = Exchange{.from = Peer{.role_shift = role_shift}, .tag = "act", .bytes = {512}},
                     .stream = kReceive,
                     .waits = {event(Freed, at_slot)},
                     .writes = {use(Incoming, at_slot)},
                     .acquires = {block(Incoming, at_slot)}};
}
Instruction send(std::int32_t role_shift, std::int32_t after) {
  return Instruction{.name = "send",
                     .what = Exchange{.to = Peer{.role_shift = role_shift}, .tag = "act", .bytes = {512}},
                     .stream = kSend,
                     .after = {after},
                     .records = {event(Sent, at_slot)},
                     .reads = {use(Output, at_slot)},
                     .releases = {block(Output, at_slot)}};
}
Instruction compute(const std::string& name, const Operation& op, Phase phase) {
  return Instruction{
      .name = name, .what = Compute{.op = op, .phase = phase, .flops = {1e6}, .traffic = {4096}}, .stream = kCompute};
}

// One matrix, x -> x W. `first` has no input from a neighbour, `last` no neighbour to send to.
// Frees what was received before it; fills what is sent after it.
void connect(Instruction& multiply, bool receives, bool sends) {
  if (receives) {
    multiply.after = {0};
    multiply.reads.push_back(use(Incoming, at_slot));
    multiply.releases.push_back(block(Incoming, at_slot));
    multiply.records.push_back(event(Freed, at_slot));
  }
  if (sends) {
    multiply.waits = {event(Sent, at_slot)};
    multiply.writes.push_back(use(Output, at_slot));
    multiply.acquires.push_back(block(Output, at_slot));
  }
}

Segment forward(bool first, bool last) {
  Segment segment{.name = first ? "forward.0" : "forward.1",
                  .params = {{"mb", ParamKind::Microbatch}, {"slot", ParamKind::Slot}}};
  if (!first) segment.instructions.push_back(receive(-1));
  Instruction multiply = compute("multiply", ops::MatMul{}, Phase::Forward);
  std::get<Compute>(multiply.what).microbatch = kMicrobatch;
  multiply.reads = {use(Weight)};
  multiply.writes = {use(Saved, at_slot), use(ForwardSpace)};
  multiply.acquires = {block(Saved, at_slot), block(ForwardSpace)};
  multiply.releases = {block(ForwardSpace)};
  connect(multiply, !first, !last);
  segment.instructions.push_back(multiply);
  if (!last) segment.instructions.push_back(send(1, first ? 0 : 1));
  return segment;
}

Segment backward(bool first, bool last) {
  Segment segment{.name = first ? "backward.0" : "backward.1",
                  .params = {{"mb", ParamKind::Microbatch}, {"slot", ParamKind::Slot}}};
  if (!last) segment.instructions.push_back(receive(1));
  Instruction multiply = compute("gradient", ops::MatMul{}, Phase::Backward);
  Compute& work = std::get<Compute>(multiply.what);
  work.accumulate_weights = true;
  work.microbatch = kMicrobatch;
  multiply.reads = {use(Weight), use(Saved, at_slot)};
  multiply.writes = {use(Gradient), use(BackwardSpace)};
  multiply.acquires = {block(BackwardSpace)};
  multiply.releases = {block(BackwardSpace), block(Saved, at_slot)};
  multiply.records = {event(BackwardDone)};
  connect(multiply, !last, !first);
  segment.instructions.push_back(multiply);
  if (!first) segment.instructions.push_back(send(-1, last ? 0 : 1));
  return segment;
}

Segment update() {
  Instruction reduce{.name = "all_reduce",
                     .what = Collective{.group = {0}, .bytes = {1024}, .dtype = DType::F32},
                     .stream = kReduce,
                     .waits = {event(BackwardDone)},
                     .reads = {use(Gradient)},
                     .writes = {use(Gradient)}};
  Instruction adam = compute("adam", ops::Adam{}, Phase::Update);
  adam.after = {0};
  adam.reads = {use(Gradient), use(Momentum), use(Weight)};
  adam.writes = {use(Momentum), use(Weight)};
  Instruction zero = compute("zero", ops::Zero{}, Phase::Update);
  zero.writes = {use(Gradient)};
  return Segment{.name = "update", .instructions = {reduce, adam, zero}};
}

Role stage(std::int32_t index) {
  Role role{.name = "stage" + std::to_string(index), .device_kind = "test-gpu", .axes = {{0}}};
  role.streams = {{"compute", StreamKind::Compute},
                  {"receive", StreamKind::Communication},
                  {"send", StreamKind::Communication},
                  {"reduce", StreamKind::Communication}};
  role.events = {{"freed", 2}, {"sent", 2}, {"backward done", 1}};
  role.layers = {"layers." + std::to_string(index)};
  const auto shard = [&](TensorPart part) { return std::vector<Shard>{Shard{.tensor = {index}, .part = part}}; };
  const auto add = [&](const char* name, Category category, std::int64_t bytes, std::vector<Bytes> offsets) -> Buffer& {
    return role.buffers.emplace_back(
        Buffer{.name = name, .category = category, .bytes = {bytes}, .offsets = std::move(offsets)});
  };
  add("weight", Category::Parameters, 1024, {{0}}).holds = shard(TensorPart::Value);
  add("gradient", Category::Gradients, 1024, {{1024}}).holds = shard(TensorPart::Gradient);
  add("momentum", Category::Optimizer, 1024, {{2048}}).holds = shard(TensorPart::Momentum);
  for (Buffer& buffer : role.buffers) buffer.resident = true, buffer.dtype = DType::F32;
  add("saved", Category::Activations, 512, {{3072}, {3584}});
  add("output", Category::Communication, 512, {{4096}, {4608}});
  add("incoming", Category::Communication, 512, {{5120}, {5632}});
  add("forward space", Category::Transient, 256, {{6144}});
  add("backward space", Category::Transient, 512, {{6144}});
  return role;
}

}  // namespace

Plan small_plan() {
  Plan plan{.samples = 6, .stages = 2, .microbatches = 3, .axes = {{.name = "dp", .size = 2}}, .groups = {{"dp", {}, {{0}}}}};
  plan.tensors = {{"stage0.weight", {16, 16}, DType::F32, "normal(0.02)"}, {"stage1.weight", {16, 16}, DType::F32, "zeros"}};
  plan.segments = {forward(true, false), backward(true, false), forward(false, true), backward(false, true), update()};
  plan.roles = {stage(0), stage(1)};
  const auto act = [&](std::int32_t stage, Work work, std::int32_t mb) {
    const std::int32_t segment = stage * 2 + (work == Work::B ? 1 : 0);
    plan.roles[static_cast<std::size_t>(stage)].actions.push_back(
        Action{.segment = {segment}, .args = {mb, mb % 2}, .does = {Does{work, stage, mb, 0}}});
  };
  act(0, Work::F, 0), act(0, Work::F, 1), act(0, Work::B, 0), act(0, Work::F, 2), act(0, Work::B, 1), act(0, Work::B, 2);
  for (std::int32_t mb : {0, 1, 2}) act(1, Work::F, mb), act(1, Work::B, mb);
  for (std::int32_t s : {0, 1})
    plan.roles[static_cast<std::size_t>(s)].actions.push_back(Action{.segment = {4}, .does = {Does{Work::Update, s, -1, 0}}});
  plan.placement.order = {{0}, Placement::kRole};
  CostTable table{.device_kind = "test-gpu"};
  for (const Segment& segment : plan.segments) {
    std::vector<Cost>& costs = table.by_segment.emplace_back();
    for (std::size_t i = 0; i < segment.instructions.size(); ++i)
      costs.push_back({.busy = {static_cast<std::int64_t>(1000 * (i + 1))}});
  }
  plan.costs = {table};
  return plan;
}

SegmentId segment_named(const Plan& plan, const std::string& name) {
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    if (plan.segments[s].name == name) return {static_cast<std::int32_t>(s)};
  throw std::logic_error("no segment " + name);
}

Instruction& instruction_named(Plan& plan, const std::string& segment, const std::string& name) {
  for (Instruction& instruction : plan.segments[segment_named(plan, segment).index()].instructions)
    if (instruction.name == name) return instruction;
  throw std::logic_error("no instruction " + name);
}

Buffer& buffer_named(Role& role, const std::string& name) {
  for (Buffer& buffer : role.buffers)
    if (buffer.name == name) return buffer;
  throw std::logic_error("no buffer " + name);
}

}  // namespace foreshard
