#include <algorithm>

#include "strategy/lower/forward_program.h"

namespace foreshard {

void ForwardProgram::receive_input(SegmentBuilder& out) {
  if (frame_.first_stage() || values_.before) return;
  const CommunicationRow& way = frame_.way(Purpose::ReceiveForward);
  out.emit({.name = "receive input",
            .what = emit_.transfer(way, values_.input, {}, emit_.previous_stage(), emit_.tag(true, frame_.stage)),
            .stream = way.stream,
            .waits = {{values_.input_free, values_.input.slot}},
            .writes = {whole(values_.input)},
            .acquires = {values_.input}});
  emit_.gather_transfer(out, way, values_.input, "gather input");
}

void ForwardProgram::add_events() {
  const ScheduleTable& schedule = frame_.lowering.tables.schedule;
  if (!schedule.asynchronous() || !schedule.receives_ahead[static_cast<std::size_t>(frame_.rank)]) return;
  const Buffer& inputs = frame_.role.buffers[values_.input.buffer.index()];
  input_here_ = frame_.add_event("input_here", static_cast<int>(inputs.offsets.size()));
}

void ForwardProgram::receive_ahead(SegmentBuilder& out) {
  receive_input(out);
  out.at(out.size() - 1).records.push_back({input_here_, values_.input.slot});
}

// What reads the input on any stream follows this instruction, as it would follow the receive.
void ForwardProgram::await_input(SegmentBuilder& out) {
  out.emit({.name = "input is here",
            .what = Mark{},
            .stream = kComputeStream,
            .waits = {{input_here_, values_.input.slot}},
            .writes = {whole(values_.input)}});
}

void ForwardProgram::send_output(SegmentBuilder& out) {
  if (frame_.last_stage()) return;
  const ChunkLayer& last = values_.layers.back();
  const Block from = last.home[static_cast<std::size_t>(last.graph->output)];
  if (values_.after) {  // both stages are here: the next one keeps a copy of its own
    const Block to{values_.after->input.buffer, {ChunkArgs::handover}};
    out.emit({.name = "hand over output",
              .what = Copy{.bytes = values_.bytes(from)},
              .stream = kComputeStream,
              .layer = last.id,
              .waits = {{values_.after->input_free, to.slot}},
              .records = {{values_.output_sent, from.slot}},
              .reads = {whole(from)},
              .writes = {whole(to)},
              .acquires = {to}});
    if (values_.output.buffer.valid()) out.release(from);
    return;
  }
  const CommunicationRow& way = frame_.way(Purpose::SendForward);
  const int sent = out.emit({.name = "send output",
                             .what = emit_.transfer(way, from, emit_.next_stage(), {}, emit_.tag(true, frame_.stage + 1)),
                             .stream = way.stream,
                             .records = {{values_.output_sent, from.slot}},
                             .reads = {whole(from)}});
  if (values_.output.buffer.valid()) out.release(from);
  wait_for_send(out, way, sent);
}

// One operator in the forward direction. `live` remembers which values of the layer have been acquired.
void ForwardProgram::run(SegmentBuilder& out, int l, int index, const ForwardVariant& variant, std::vector<char>& live) {
  const ChunkLayer& layer = values_.layer(l);
  const Operator& op = layer.graph->operators[static_cast<std::size_t>(index)];
  const auto home = [&](int value) { return layer.home[layer.real(value)]; };
  if (op.communication) {
    if (!op.communication->forward) return;
    const Block from = home(op.inputs[0]);
    const bool in_place = op.outputs.empty();
    if (!in_place) live[static_cast<std::size_t>(op.outputs[0])] = 1;
    const int emitted =
        emit_.communicate(out, layer, op, *op.communication->forward, from, in_place ? from : home(op.outputs[0]), !in_place);
    if (!in_place) moves_.before_write(out.at(emitted), l, op.outputs[0]);
    return;
  }
  Instruction run = emit_.compute(layer, op, Phase::Forward);
  for (const int value : op.inputs) {
    run.reads.push_back(whole(home(value)));
    if (live[layer.real(value)]) continue;
    run.acquires.push_back(home(value));  // comes with the micro-batch
    live[layer.real(value)] = 1;
  }
  for (const int weight : op.weights) {
    run.reads.push_back(state_.weight(l, weight));
    if (variant.waits_for_parameters) state_.wait_for_update(run, l, weight);
  }
  for (const int value : op.outputs) {
    run.writes.push_back(whole(home(value)));
    run.acquires.push_back(home(value));
    moves_.before_write(run, l, value);
    live[static_cast<std::size_t>(value)] = 1;
    if (values_.output.buffer.valid() && l + 1 == static_cast<int>(values_.layers.size()) && value == layer.graph->output)
      run.waits.push_back({values_.output_sent, values_.output.slot});
  }
  emit_.emit(out, op, std::move(run));
}

void ForwardProgram::run_layer(SegmentBuilder& out, int l, const ForwardVariant& variant) {
  const ChunkLayer& layer = values_.layer(l);
  const LayerGraph& graph = *layer.graph;
  std::vector<int> last_use(graph.values.size(), -1);
  for (int i = 0; i < static_cast<int>(graph.operators.size()); ++i) {
    for (const int value : graph.operators[static_cast<std::size_t>(i)].inputs) last_use[layer.real(value)] = i;
    for (const int value : graph.operators[static_cast<std::size_t>(i)].outputs) last_use[layer.real(value)] = i;
  }
  std::vector<char> live(graph.values.size(), 0);
  if (graph.input >= 0) live[static_cast<std::size_t>(graph.input)] = 1;
  state_.visits().start(out, l, variant.waits_for_parameters);
  for (int i = 0; i < static_cast<int>(graph.operators.size()); ++i) {
    run(out, l, i, variant, live);
    for (std::size_t v = 0; v < last_use.size(); ++v)
      if (last_use[v] == i && live[v]) forget(out, l, static_cast<int>(v));
    moves_.after_forward(out, l, i);
  }
  state_.visits().end(out, l);
}

// The value's last use in the forward is behind us: release it unless somebody needs it later.
void ForwardProgram::forget(SegmentBuilder& out, int l, int value) {
  const ChunkLayer& layer = values_.layer(l);
  const bool is_input = value == layer.graph->input, is_output = value == layer.graph->output;
  if (!is_output && moves_.is_away(l, value)) return moves_.send(out, l, value);
  if (is_output || layer.keep->stored[static_cast<std::size_t>(value)]) return;  // the next layer or the backward releases it
  if (is_input && values_.border_stored(l)) return;
  const Block block = layer.home[static_cast<std::size_t>(value)];
  if (is_input && l == 0) out.record_after_last_use(block, {values_.input_free, block.slot});
  out.release(block);
}

void ForwardProgram::run_layers(SegmentBuilder& out, const ForwardVariant& variant) {
  for (int l = 0; l < values_.count(); ++l) run_layer(out, l, variant);
  state_.visits().bring_ahead(out, variant.waits_for_parameters);
}

}  // namespace foreshard
