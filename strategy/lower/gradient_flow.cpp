// Where the gradients of activations live during the backward of a chunk: received, made, summed, shared, passed on, sent.
#include <algorithm>

#include "strategy/lower/gradient_flow.h"

namespace foreshard {

void GradientFlow::begin_trial() {
  sent_ = -1;
  kept_.clear();
  trying_ = frame_.splits();
}

bool GradientFlow::learn(const BackwardState& end) {
  trying_ = false;
  for (const Deferred& deferred : end.deferred)
    for (const int held : deferred.gradients) {
      kept_.resize(end.held.size(), 0);
      kept_[static_cast<std::size_t>(held)] = end.block_of(held) != values_.gradient_in;
    }
  return sent_ >= 0 || !kept_.empty();
}

void GradientFlow::receive(SegmentBuilder& out, BackwardState& state) {
  if (frame_.last_stage() || !arrives()) return;
  if (!values_.after) {
    const CommunicationRow& way = frame_.way(Purpose::ReceiveBackward);
    out.emit({.name = "receive gradient",
              .what = emit_.transfer(way, values_.gradient_in, {}, emit_.next_stage(), emit_.tag(false, frame_.stage)),
              .stream = way.stream,
              .waits = {{values_.gradient_free, values_.gradient_in.slot}},
              .writes = {whole(values_.gradient_in)},
              .acquires = {values_.gradient_in}});
    emit_.gather_transfer(out, way, values_.gradient_in, "gather gradient");
  }
  state.held.push_back({values_.gradient_in, 1});
  state.border = 0;
}

void GradientFlow::send(SegmentBuilder& out, BackwardState& state) {
  if (frame_.first_stage() || !wants(0, values_.layers.front().graph->input)) return;
  FS_ASSERT(state.border >= 0);
  BackwardState::Held& held = state.held[static_cast<std::size_t>(state.border)];
  Block from = held.block;
  const bool kept = held.pending > 1;  // a weight gradient reads it later
  if (values_.before || kept) {        // a copy for the chunk before, or for the ring that is sent from
    const Block to = values_.before ? Block{values_.before->gradient_in.buffer, {ChunkArgs::handover}} : values_.gradient_out;
    const EventId free = values_.before ? values_.before->gradient_free : values_.gradient_sent;
    out.emit({.name = values_.before ? "hand over gradient" : "copy gradient",
              .what = Copy{.bytes = values_.bytes(to)},
              .stream = kComputeStream,
              .layer = values_.layers.front().id,
              .waits = {{free, to.slot}},
              .reads = {whole(from)},
              .writes = {whole(to)},
              .acquires = {to}});
    if (--held.pending == 0) release(out, from);
    if (values_.before) return;
    from = to;
  }
  if (from != values_.gradient_in &&
      from != values_.gradient_out) {  // summed in place since some later layer: it has to start in the ring
    sent_ = state.border;
    return;
  }
  const CommunicationRow& way = frame_.way(Purpose::SendBackward);
  const int sent = out.emit({.name = "send gradient",
                             .what = emit_.transfer(way, from, emit_.previous_stage(), {}, emit_.tag(false, frame_.stage - 1)),
                             .stream = way.stream,
                             .reads = {whole(from)}});
  release(out, from);
  wait_for_send(out, way, sent);
}

void GradientFlow::release(SegmentBuilder& out, const Block& block) {
  if (block == values_.gradient_in) out.record_after_last_use(block, {values_.gradient_free, block.slot});
  if (block == values_.gradient_out) out.record_after_last_use(block, {values_.gradient_sent, block.slot});
  out.release(block);
}

// A block for the gradient of `value`; the one the layer's kind shares, in a place that no live gradient holds.
int GradientFlow::fresh(int l, int value, BackwardState& state) {
  const ChunkLayer& layer = values_.layer(l);
  const auto taken = [&](const Block& block) {
    return std::any_of(state.held.begin(), state.held.end(),
                       [&](const BackwardState::Held& held) { return held.pending > 0 && held.block == block; });
  };
  Block block = values_.gradient_out;
  const std::size_t index = state.held.size();
  const bool known = frame_.splits() && sent_ >= 0;  // which one leaves: no other may take its place, a copy may be made late
  const bool leaves = value == layer.graph->input && l == 0 && !frame_.first_stage() && !values_.before && !known &&
                      !taken(values_.gradient_out);
  if (index < kept_.size() && kept_[index]) {
    block = values_.deferred_home(l, value, static_cast<int>(index));
  } else if (!leaves && static_cast<int>(index) != sent_) {
    const bool border = value == layer.graph->input || value == layer.graph->output;
    block = {border ? values_.border_gradient : values_.scratch(*layer.graph, value, true), {0}};
    if (taken(block)) block.slot = {1};
    FS_ASSERT(trying_ || !taken(block));
  }
  state.held.push_back({block, 1});
  state.gradient[static_cast<std::size_t>(value)] = static_cast<int>(state.held.size()) - 1;
  return state.gradient[static_cast<std::size_t>(value)];
}

void GradientFlow::drop(SegmentBuilder& out, int value, BackwardState& state) {
  int& index = state.gradient[static_cast<std::size_t>(value)];
  if (index < 0) return;
  BackwardState::Held& held = state.held[static_cast<std::size_t>(index)];
  index = -1;
  if (--held.pending == 0) release(out, held.block);
}

// An operator without a gradient kernel (a residual sum) hands the gradient of its result to its inputs, without a copy.
void GradientFlow::pass_all(SegmentBuilder& out, int l, int index, BackwardState& state) {
  const ChunkLayer& layer = values_.layer(l);
  const Operator& op = layer.graph->operators[static_cast<std::size_t>(index)];
  const int from = state.gradient[static_cast<std::size_t>(op.outputs[0])];
  for (const int value : op.inputs) pass(out, l, value, from, state);
}

void GradientFlow::pass(SegmentBuilder& out, int l, int value, int from, BackwardState& state) {
  if (!wants(l, value)) return;
  int& known = state.gradient[static_cast<std::size_t>(value)];
  if (known < 0) {
    known = from;
    ++state.held[static_cast<std::size_t>(from)].pending;
    return;
  }
  own(out, l, value, state);
  add(out, values_.layer(l), value, state.held[static_cast<std::size_t>(from)].block, state);
}

// gradient(value) += block
void GradientFlow::add(SegmentBuilder& out, const ChunkLayer& layer, int value, const Block& block, BackwardState& state) {
  const Value& shape = layer.graph->values[static_cast<std::size_t>(value)];
  const std::int64_t elements = shape.bytes.value / size_of(shape.dtype).value;
  const Block sum = state.held[static_cast<std::size_t>(state.gradient[static_cast<std::size_t>(value)])].block;
  out.emit({.name = "add gradients",
            .what = Compute{.op = ops::Add{},
                            .phase = Phase::InputGrad,
                            .shapes = {{shape.dims, shape.dtype}},
                            .flops = {static_cast<double>(elements)},
                            .traffic = shape.bytes * 3,
                            .accumulate = true},
            .stream = kComputeStream,
            .layer = layer.id,
            .reads = {whole(block)},
            .writes = {whole(sum)}});
}

// Before something is added to a gradient that other values still share: a copy of its own.
void GradientFlow::own(SegmentBuilder& out, int l, int value, BackwardState& state) {
  const ChunkLayer& layer = values_.layer(l);
  const int shared = state.gradient[static_cast<std::size_t>(value)];
  if (state.held[static_cast<std::size_t>(shared)].pending == 1) return;
  const Block from = state.held[static_cast<std::size_t>(shared)].block;
  const Block to = state.held[static_cast<std::size_t>(fresh(l, value, state))].block;
  --state.held[static_cast<std::size_t>(shared)].pending;
  const Value& shape = layer.graph->values[static_cast<std::size_t>(value)];
  Instruction copy{.name = "copy gradient",
                   .what = Copy{.bytes = shape.bytes},
                   .stream = kComputeStream,
                   .layer = layer.id,
                   .reads = {whole(from)},
                   .writes = {whole(to)},
                   .acquires = {to}};
  if (to == values_.gradient_out) copy.waits.push_back({values_.gradient_sent, to.slot});
  out.emit(std::move(copy));
}

// The gradient of `value` was `known` before its newest part was made in `block`: adds the part and forgets the block.
void GradientFlow::add_beside(SegmentBuilder& out, int l, int value, int known, const Block& block, BackwardState& state) {
  const int part = state.gradient[static_cast<std::size_t>(value)];
  state.gradient[static_cast<std::size_t>(value)] = known;
  own(out, l, value, state);
  add(out, values_.layer(l), value, block, state);
  state.held[static_cast<std::size_t>(part)].pending = 0;
  release(out, block);
}

bool GradientFlow::arrives() const {
  const ChunkLayer& last = values_.layers.back();
  return last.graph->output >= 0 && last.graph->values[static_cast<std::size_t>(last.graph->output)].needs_grad;
}

bool GradientFlow::wants(int l, int value) const {
  const ChunkLayer& layer = values_.layer(l);
  if (value == layer.graph->input && l == 0 && frame_.first_stage()) return false;
  return layer.graph->values[static_cast<std::size_t>(value)].needs_grad;
}

}  // namespace foreshard
