#include <algorithm>

#include "strategy/lower/chunk_program.h"

namespace foreshard {

static Use whole(const Block& block) { return {.buffer = block.buffer, .slot = block.slot}; }

void ChunkProgram::receive_input(SegmentBuilder& out) {
  if (first_stage() || local_before_) return;
  const Buffer& buffer = role_.buffers[input_.buffer.index()];
  out.emit({.name = "receive input",
            .what = Exchange{.from = previous_stage(), .tag = tag(true, stage_), .bytes = buffer.bytes},
            .stream = transfer(Purpose::ReceiveForward).stream,
            .waits = {{input_free_, input_.slot}},
            .writes = {whole(input_)},
            .acquires = {input_}});
}

void ChunkProgram::send_output(SegmentBuilder& out) {
  if (last_stage()) return;
  const Layer& last = layers_.back();
  const Block from = last.home[static_cast<std::size_t>(last.graph->output)];
  const Buffer& buffer = role_.buffers[from.buffer.index()];
  if (local_after_) {  // both stages are here: the next one keeps a copy of its own
    const Block to{local_after_->input_.buffer, {ChunkArgs::handover}};
    out.emit({.name = "hand over output",
              .what = Copy{.bytes = buffer.bytes},
              .stream = kComputeStream,
              .layer = last.id,
              .waits = {{local_after_->input_free_, to.slot}},
              .records = {{output_sent_, from.slot}},
              .reads = {whole(from)},
              .writes = {whole(to)},
              .acquires = {to}});
    if (output_.buffer.valid()) out.release(from);
    return;
  }
  const int sent = out.emit({.name = "send output",
                             .what = Exchange{.to = next_stage(), .tag = tag(true, stage_ + 1), .bytes = buffer.bytes},
                             .stream = transfer(Purpose::SendForward).stream,
                             .records = {{output_sent_, from.slot}},
                             .reads = {whole(from)}});
  if (output_.buffer.valid()) out.release(from);
  wait_for_send(out, sent);
}

// Transfers that do not overlap: the compute stream stands still until the other side has the data.
void ChunkProgram::wait_for_send(SegmentBuilder& out, int sent) {
  if (transfer(Purpose::SendForward).overlaps) return;
  out.emit({.name = "sent", .what = Mark{}, .stream = kComputeStream, .after = {sent}});
}

// One operator in the forward direction. `live` remembers which values of the layer have been acquired.
void ChunkProgram::run_forward(SegmentBuilder& out, int l, int index, const ForwardVariant& variant, std::vector<char>& live) {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const Operator& op = layer.graph->operators[static_cast<std::size_t>(index)];
  const auto home = [&](int value) { return layer.home[real(layer, value)]; };
  if (op.communication) {
    if (!op.communication->forward) return;
    const Block from = home(op.inputs[0]);
    const bool in_place = op.outputs.empty();
    if (!in_place) live[static_cast<std::size_t>(op.outputs[0])] = 1;
    emit_communication(out, layer, op, *op.communication->forward, from, in_place ? from : home(op.outputs[0]), !in_place);
    return;
  }
  Instruction run = compute(layer, op, Phase::Forward);
  for (const int value : op.inputs) {
    run.reads.push_back(whole(home(value)));
    if (live[real(layer, value)]) continue;
    run.acquires.push_back(home(value));  // comes with the micro-batch
    live[real(layer, value)] = 1;
  }
  for (const int weight : op.weights) {
    run.reads.push_back(weight_use(l, weight));
    if (variant.waits_for_parameters) wait_for_unit(run, l, weight);
  }
  for (const int value : op.outputs) {
    run.writes.push_back(whole(home(value)));
    run.acquires.push_back(home(value));
    live[static_cast<std::size_t>(value)] = 1;
    if (output_.buffer.valid() && l + 1 == static_cast<int>(layers_.size()) && value == layer.graph->output)
      run.waits.push_back({output_sent_, output_.slot});
  }
  out.emit(std::move(run));
}

// Once per unit and run: the first operator that reads it waits for its update and all-gather.
void ChunkProgram::wait_for_unit(Instruction& run, int layer, int parameter) {
  const int unit = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)].unit;
  if (state_.units[static_cast<std::size_t>(unit)].borrowed) return;  // its owner waited: the first stage runs first
  if (!gathers_after_update(state_.units[static_cast<std::size_t>(unit)]) || waited_[static_cast<std::size_t>(unit)]) return;
  waited_[static_cast<std::size_t>(unit)] = 1;
  run.waits.push_back({ready_, {unit}});
}

void ChunkProgram::forward_layer(SegmentBuilder& out, int l, const ForwardVariant& variant) {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const LayerGraph& graph = *layer.graph;
  std::vector<int> last_use(graph.values.size(), -1);
  for (int i = 0; i < static_cast<int>(graph.operators.size()); ++i) {
    for (const int value : graph.operators[static_cast<std::size_t>(i)].inputs) last_use[real(layer, value)] = i;
    for (const int value : graph.operators[static_cast<std::size_t>(i)].outputs) last_use[real(layer, value)] = i;
  }
  std::vector<char> live(graph.values.size(), 0);
  if (graph.input >= 0) live[static_cast<std::size_t>(graph.input)] = 1;
  gather_layer(out, l, variant.waits_for_parameters);
  for (int i = 0; i < static_cast<int>(graph.operators.size()); ++i) {
    run_forward(out, l, i, variant, live);
    for (std::size_t v = 0; v < last_use.size(); ++v)
      if (last_use[v] == i && live[v]) forget_after_forward(out, l, static_cast<int>(v));
  }
  release_gathered(out, l);
}

// The value's last use in the forward is behind us: release it unless somebody needs it later.
void ChunkProgram::forget_after_forward(SegmentBuilder& out, int l, int value) {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const bool is_input = value == layer.graph->input, is_output = value == layer.graph->output;
  if (is_output || layer.keep->stored[static_cast<std::size_t>(value)]) return;  // the next layer or the backward releases it
  if (is_input && border_stored(l)) return;
  const Block block = layer.home[static_cast<std::size_t>(value)];
  if (is_input && l == 0) out.record_after_last_use(block, {input_free_, block.slot});
  out.release(block);
}

Segment ChunkProgram::forward(const ForwardVariant& variant) {
  SegmentBuilder out("forward." + std::to_string(chunk_), chunk_params(splits()));
  gathers_ = 0;
  waited_.assign(state_.units.size(), 0);
  begin(out);
  receive_input(out);
  if (runs_) play_segment(out, variant);
  for (int l = 0; l < static_cast<int>(layers_.size()) && !runs_; ++l) forward_layer(out, l, variant);
  end(out);
  send_output(out);
  return out.take();
}

}  // namespace foreshard
