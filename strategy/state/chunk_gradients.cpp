// Where the gradients of activations live during the backward of a chunk: received, made, summed, shared, passed on, sent.
#include <algorithm>

#include "strategy/lower/chunk_program.h"

namespace foreshard {

static Use whole(const Block& block) { return {.buffer = block.buffer, .slot = block.slot}; }

void ChunkProgram::receive_gradient(SegmentBuilder& out, BackwardState& state) {
  if (last_stage()) return;
  if (!local_after_)
    out.emit({.name = "receive gradient",
              .what = Exchange{.from = next_stage(),
                               .tag = tag(false, stage_),
                               .bytes = role_.buffers[gradient_in_.buffer.index()].bytes},
              .stream = transfer(Purpose::ReceiveBackward).stream,
              .waits = {{gradient_free_, gradient_in_.slot}},
              .writes = {whole(gradient_in_)},
              .acquires = {gradient_in_}});
  state.held.push_back({gradient_in_, 1});
  state.border = 0;
}

void ChunkProgram::send_gradient(SegmentBuilder& out, BackwardState& state) {
  if (first_stage()) return;
  FS_ASSERT(state.border >= 0);
  BackwardState::Held& held = state.held[static_cast<std::size_t>(state.border)];
  Block from = held.block;
  const bool kept = held.pending > 1;  // a weight gradient reads it later
  if (local_before_ || kept) {         // a copy for the chunk before, or for the ring that is sent from
    const Block to = local_before_ ? Block{local_before_->gradient_in_.buffer, {ChunkArgs::handover}} : gradient_out_;
    const EventId free = local_before_ ? local_before_->gradient_free_ : gradient_sent_;
    out.emit({.name = local_before_ ? "hand over gradient" : "copy gradient",
              .what = Copy{.bytes = role_.buffers[to.buffer.index()].bytes},
              .stream = kComputeStream,
              .layer = layers_.front().id,
              .waits = {{free, to.slot}},
              .reads = {whole(from)},
              .writes = {whole(to)},
              .acquires = {to}});
    if (--held.pending == 0) release_gradient(out, from);
    if (local_before_) return;
    from = to;
  }
  if (from != gradient_in_ && from != gradient_out_) {  // summed in place since some later layer: it has to start in the ring
    sent_ = state.border;
    return;
  }
  const int sent = out.emit(
      {.name = "send gradient",
       .what =
           Exchange{.to = previous_stage(), .tag = tag(false, stage_ - 1), .bytes = role_.buffers[from.buffer.index()].bytes},
       .stream = transfer(Purpose::SendBackward).stream,
       .reads = {whole(from)}});
  release_gradient(out, from);
  wait_for_send(out, sent);
}

void ChunkProgram::release_gradient(SegmentBuilder& out, const Block& block) {
  if (block == gradient_in_) out.record_after_last_use(block, {gradient_free_, block.slot});
  if (block == gradient_out_) out.record_after_last_use(block, {gradient_sent_, block.slot});
  out.release(block);
}

// A block for the gradient of `value`; the one the layer's kind shares, in a place that no live gradient holds.
int ChunkProgram::fresh_gradient(int l, int value, BackwardState& state) {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const auto taken = [&](const Block& block) {
    return std::any_of(state.held.begin(), state.held.end(),
                       [&](const BackwardState::Held& held) { return held.pending > 0 && held.block == block; });
  };
  Block block = gradient_out_;
  const std::size_t index = state.held.size();
  const bool known = splits() && sent_ >= 0;  // which one leaves: no other may take its place, a copy may be made late
  const bool leaves =
      value == layer.graph->input && l == 0 && !first_stage() && !local_before_ && !known && !taken(gradient_out_);
  if (index < kept_.size() && kept_[index]) {
    block = deferred_home(l, value, static_cast<int>(index));
  } else if (!leaves && static_cast<int>(index) != sent_) {
    const bool border = value == layer.graph->input || value == layer.graph->output;
    block = {border ? border_gradient_ : scratch(*layer.graph, value, true), {0}};
    if (taken(block)) block.slot = {1};
    FS_ASSERT(trying_ || !taken(block));
  }
  state.held.push_back({block, 1});
  state.gradient[static_cast<std::size_t>(value)] = static_cast<int>(state.held.size()) - 1;
  return state.gradient[static_cast<std::size_t>(value)];
}

void ChunkProgram::drop_gradient(SegmentBuilder& out, int value, BackwardState& state) {
  int& index = state.gradient[static_cast<std::size_t>(value)];
  if (index < 0) return;
  BackwardState::Held& held = state.held[static_cast<std::size_t>(index)];
  index = -1;
  if (--held.pending == 0) release_gradient(out, held.block);
}

// An operator without a gradient kernel (a residual sum) hands the gradient of its result to its inputs, without a copy.
void ChunkProgram::pass_gradients(SegmentBuilder& out, int l, int index, BackwardState& state) {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const Operator& op = layer.graph->operators[static_cast<std::size_t>(index)];
  const int from = state.gradient[static_cast<std::size_t>(op.outputs[0])];
  for (const int value : op.inputs) pass_gradient(out, l, value, from, state);
}

void ChunkProgram::pass_gradient(SegmentBuilder& out, int l, int value, int from, BackwardState& state) {
  if (!wants_gradient(l, value)) return;
  int& known = state.gradient[static_cast<std::size_t>(value)];
  if (known < 0) {
    known = from;
    ++state.held[static_cast<std::size_t>(from)].pending;
    return;
  }
  own_gradient(out, l, value, state);
  add_gradients(out, layers_[static_cast<std::size_t>(l)], value, state.held[static_cast<std::size_t>(from)].block, state);
}

// gradient(value) += block
void ChunkProgram::add_gradients(SegmentBuilder& out, const Layer& layer, int value, const Block& block, BackwardState& state) {
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
void ChunkProgram::own_gradient(SegmentBuilder& out, int l, int value, BackwardState& state) {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const int shared = state.gradient[static_cast<std::size_t>(value)];
  if (state.held[static_cast<std::size_t>(shared)].pending == 1) return;
  const Block from = state.held[static_cast<std::size_t>(shared)].block;
  const Block to = state.held[static_cast<std::size_t>(fresh_gradient(l, value, state))].block;
  --state.held[static_cast<std::size_t>(shared)].pending;
  const Value& shape = layer.graph->values[static_cast<std::size_t>(value)];
  Instruction copy{.name = "copy gradient",
                   .what = Copy{.bytes = shape.bytes},
                   .stream = kComputeStream,
                   .layer = layer.id,
                   .reads = {whole(from)},
                   .writes = {whole(to)},
                   .acquires = {to}};
  if (to == gradient_out_) copy.waits.push_back({gradient_sent_, to.slot});
  out.emit(std::move(copy));
}

// The gradient of `value` was `known` before its newest part was made in `block`: adds the part and forgets the block.
void ChunkProgram::add_beside(SegmentBuilder& out, int l, int value, int known, const Block& block, BackwardState& state) {
  const int part = state.gradient[static_cast<std::size_t>(value)];
  state.gradient[static_cast<std::size_t>(value)] = known;
  own_gradient(out, l, value, state);
  add_gradients(out, layers_[static_cast<std::size_t>(l)], value, block, state);
  state.held[static_cast<std::size_t>(part)].pending = 0;
  release_gradient(out, block);
}

bool ChunkProgram::wants_gradient(int l, int value) const {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  if (value == layer.graph->input && l == 0 && first_stage()) return false;
  return layer.graph->values[static_cast<std::size_t>(value)].needs_grad;
}

}  // namespace foreshard
