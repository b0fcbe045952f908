// The backward of a chunk: goes through the forward operators in reverse, redoes what was not kept, passes gradients on.
//
//   value      stored | redone ... read by the backward of the operators that saved it ... released after the last of them
//   gradient   made by the backward of the last consumer, summed into by the others, read by the backward of the producer
#include <algorithm>

#include "strategy/lower/backward_program.h"

namespace foreshard {

// One backward read of a forward value is done; after the last one the value dies.
void BackwardProgram::used(SegmentBuilder& out, int l, int name, BackwardState& state) {
  if (values_.runs) return;  // the schedule says when
  const ChunkLayer& layer = values_.layer(l);
  const auto v = layer.real(name);
  const int value = static_cast<int>(v);
  if (--state.uses[v] > 0 || !state.present[v]) return;
  const bool is_input = value == layer.graph->input;
  if (is_input && l > 0) {  // the layer before may have saved it as its output
    const ChunkLayer& before = values_.layers[static_cast<std::size_t>(l) - 1];
    const bool owns = state.half == Work::W && state.left[static_cast<std::size_t>(l)].owns_input;
    if (before.keep->stored[static_cast<std::size_t>(before.graph->output)] && !owns) return;
  }
  const bool is_kept = state.where[v] == layer.home[v];  // not made again beside what the layer after keeps
  if (state.half == Work::I && value == layer.graph->output && is_kept && l + 1 < static_cast<int>(values_.layers.size())) {
    const ChunkLayer& after = values_.layers[static_cast<std::size_t>(l) + 1];
    LayerBackwardEnd& left = state.left[static_cast<std::size_t>(l) + 1];
    if (left.uses[after.real(after.graph->input)] > 0) {  // a weight gradient of the layer after reads it last
      left.owns_input = true;
      return;
    }
  }
  state.present[v] = 0;
  const Block block = state.where[v];
  if (block == values_.input) out.record_after_last_use(block, {values_.input_free, block.slot});
  const bool sent = !frame_.last_stage() && l + 1 == static_cast<int>(values_.layers.size()) && value == layer.graph->output;
  if (sent && block == layer.home[v]) out.wait_before_last_use(block, {values_.output_sent, block.slot});
  moves_.release(out, block);
}

void BackwardProgram::redo(SegmentBuilder& out, int l, int index, BackwardState& state) {
  const ChunkLayer& layer = values_.layer(l);
  const Operator& op = layer.graph->operators[static_cast<std::size_t>(index)];
  if (state.redone[static_cast<std::size_t>(index)]) return;
  state.redone[static_cast<std::size_t>(index)] = 1;
  const auto place = [&](int value) {  // a value that is there already is made again beside it and dropped
    const auto v = static_cast<std::size_t>(value);
    if (state.half == Work::I && layer.late[v] && !layer.keep->stored[v]) return values_.deferred_home(l, value, -1);
    if (value == layer.graph->output) return Block{values_.border_value, {l % 2}};
    return Block{values_.scratch(*layer.graph, value, false), {0}};
  };
  std::vector<Block> dead;
  const auto appear = [&](int value, Instruction* run) {
    const auto v = static_cast<std::size_t>(value);
    const Block block = place(value);
    if (run) run->writes.push_back(whole(block)), run->acquires.push_back(block);
    if (state.present[v] || state.uses[v] == 0)
      dead.push_back(block);
    else
      state.present[v] = 1, state.where[v] = block;
  };
  if (op.communication) {
    if (op.communication->forward) {
      const Block from = state.where[layer.real(op.inputs[0])];
      const bool in_place = op.outputs.empty();
      const int emitted = emit_.communicate(out, layer, op, *op.communication->forward, from,
                                            in_place ? from : place(op.outputs[0]), !in_place);
      FS_ASSERT(emitted >= 0);
      if (!in_place) appear(op.outputs[0], nullptr);
    }
  } else {
    Instruction run = emit_.compute(layer, op, Phase::Recompute);
    for (const int value : op.inputs) {
      const std::size_t v = layer.real(value);
      FS_ASSERT(state.present[v]);
      run.reads.push_back(whole(state.where[v]));
    }
    for (const int weight : op.weights) read_weight(run, l, weight);
    for (const int value : op.outputs) appear(value, &run);
    emit_.emit(out, op, std::move(run));
  }
  for (const Block& block : dead) out.release(block);
  for (const int value : op.inputs) used(out, l, value, state);
}

// Brings back values that the backward is about to read: their producers run again, with all that runs together with them.
void BackwardProgram::redo_for(SegmentBuilder& out, int l, const std::vector<int>& values, BackwardState& state) {
  if (values_.runs) return;  // has run where the schedule says
  const ChunkLayer& layer = values_.layer(l);
  const auto& operators = layer.graph->operators;
  for (const int name : values) {
    const std::size_t value = layer.real(name);
    if (state.present[value]) continue;
    const auto makes = [&](const Operator& op) {
      return std::find(op.outputs.begin(), op.outputs.end(), static_cast<int>(value)) != op.outputs.end();
    };
    const auto producer = static_cast<std::size_t>(std::find_if(operators.begin(), operators.end(), makes) - operators.begin());
    FS_ASSERT(producer < operators.size() && layer.keep->redone[producer]);
    const int run = layer.keep->run[producer];
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const bool together = i == producer || (run >= 0 && layer.keep->run[i] == run);
      if (!together || state.redone[i]) continue;
      redo_for(out, l, operators[i].inputs, state);
      redo(out, l, static_cast<int>(i), state);
    }
  }
}

void BackwardProgram::read_weight(Instruction& run, int l, int weight) {
  run.reads.push_back(state_.weight(l, weight));
  if (frame_.lowering.tables.schedule.backwards_read_newest()) state_.wait_for_update(run, l, weight);
}

void BackwardProgram::input_gradients(SegmentBuilder& out, int l, int index, const BackwardVariant& variant,
                                      BackwardState& state) {
  const ChunkLayer& layer = values_.layer(l);
  const Operator& op = layer.graph->operators[static_cast<std::size_t>(index)];
  const bool fused_residual = is<ops::Dropout>(op.op) && op.inputs.size() == 2;  // inputs[1] skips the dropout
  std::vector<int> wanted;
  for (const int value : op.inputs)
    if (flow_.wants(l, value) && !(fused_residual && value == op.inputs[1]) &&
        std::find(wanted.begin(), wanted.end(), value) == wanted.end())
      wanted.push_back(value);
  const bool makes_both = !op.weights.empty() && !op.frozen && op.weight_grad == OpWork{};
  if (wanted.empty() && !makes_both) return;
  Instruction run = emit_.compute(layer, op, makes_both ? Phase::Backward : Phase::InputGrad);
  for (const int value : op.outputs)
    if (const int dy = state.gradient[static_cast<std::size_t>(value)]; dy >= 0)
      run.reads.push_back(whole(state.held[static_cast<std::size_t>(dy)].block));
  const bool later = state.half == Work::I && defers(op);
  const bool beside_frozen = std::ranges::any_of(layer.graph->parameters, &Parameter::frozen);
  if (is<ops::MatMul>(op.op) && (later || beside_frozen)) {
    // Reads no bias, and no input, which may not be here yet, may not have been kept, or may be a partial sum.
    read_weight(run, l, op.weights.front());
  } else {
    for (const int value : op.saved) run.reads.push_back(whole(state.where[layer.real(value)]));
    if (!(op.frozen && is<ops::Dropout>(op.op)))  // no gradient depends on a bias
      for (const int weight : op.weights) read_weight(run, l, weight);
  }
  struct Beside {
    int value = 0, known = 0;
    Block block = {};
  };
  std::vector<Beside> beside;  // made beside a gradient that is there already, and added to it afterwards
  for (const int value : wanted) {
    const int known = state.gradient[static_cast<std::size_t>(value)];
    const bool adds = known >= 0 && wanted.size() == 1;
    if (adds) {
      flow_.own(out, l, value, state);
      auto& what = std::get<Compute>(run.what);
      what.accumulate = true;
      what.traffic += layer.graph->values[static_cast<std::size_t>(value)].bytes;
    } else {
      flow_.fresh(l, value, state);
    }
    const Block to = state.held[static_cast<std::size_t>(state.gradient[static_cast<std::size_t>(value)])].block;
    run.writes.push_back(whole(to));
    if (!adds) run.acquires.push_back(to);
    if (!adds && to == values_.gradient_out) run.waits.push_back({values_.gradient_sent, to.slot});
    if (known >= 0 && !adds) beside.push_back({value, known, to});
  }
  if (makes_both) write_weight_gradients(run, l, op, variant, state);
  emit_.emit(out, op, std::move(run));
  for (const auto& [value, known, block] : beside) flow_.add_beside(out, l, value, known, block, state);
  if (fused_residual) flow_.pass(out, l, op.inputs[1], state.gradient[static_cast<std::size_t>(op.outputs[0])], state);
}

// Adds the gradients of the operator's parameters to what `run` writes.
void BackwardProgram::write_weight_gradients(Instruction& run, int l, const Operator& op, const BackwardVariant& variant,
                                             BackwardState& state) {
  bool accumulates = false;
  for (const int weight : op.weights) {
    const Use to = state_.weight_gradient(l, weight);
    const ParameterPlace& place = state_.place(l, weight);
    const std::pair<int, std::int64_t> at{place.unit, place.element};
    if (std::find(state.written_places.begin(), state.written_places.end(), at) != state.written_places.end())
      accumulates = true;                            // tied: the head wrote it in this backward
    if (lends_embedding(place)) accumulates = true;  // ... or in one before
    state.written_places.push_back(at);
    run.writes.push_back(to);
    const bool cut = state_.cuts_gradients(place.unit);  // then the sum of each micro-batch accumulates
    if (!cut && variant.accumulates) accumulates = true;
    if (accumulates) std::get<Compute>(run.what).traffic += *to.length;
    if (!variant.accumulates) state_.wait_for_taken(run, place.unit, state.taken);
    if (!state_.writes_gradients_to_slots(place.unit)) continue;
    state_.open_gradient(run, to, place.unit, state.opened);
  }
  if (accumulates && std::get<Compute>(run.what).phase == Phase::WeightGrad) std::get<Compute>(run.what).accumulate = true;
  if (accumulates && std::get<Compute>(run.what).phase == Phase::Backward)
    std::get<Compute>(run.what).accumulate_weights = true;
}

void BackwardProgram::weight_gradients(SegmentBuilder& out, int l, int index, const BackwardVariant& variant,
                                       BackwardState& state) {
  const ChunkLayer& layer = values_.layer(l);
  const Operator& op = layer.graph->operators[static_cast<std::size_t>(index)];
  if (!defers(op)) return;
  if (state.half == Work::I) return defer(l, index, state);
  Instruction run = emit_.compute(layer, op, Phase::WeightGrad);
  for (const int value : op.outputs)
    if (const int dy = state.gradient[static_cast<std::size_t>(value)]; dy >= 0)
      run.reads.push_back(whole(state.held[static_cast<std::size_t>(dy)].block));
  for (const int value : op.saved) run.reads.push_back(whole(state.where[layer.real(value)]));
  write_weight_gradients(run, l, op, variant, state);
  emit_.emit(out, op, std::move(run));
}

void BackwardProgram::communicate_back(SegmentBuilder& out, int l, const Operator& op, BackwardState& state) {
  const ChunkLayer& layer = values_.layer(l);
  const bool in_place = op.outputs.empty();
  const int produced = in_place ? op.inputs[0] : op.outputs[0];
  const int dy = state.gradient[static_cast<std::size_t>(produced)];
  if (dy < 0) return;
  const Block from = state.held[static_cast<std::size_t>(dy)].block;
  if (in_place) {
    if (!op.communication->backward) return;
    flow_.own(out, l, produced, state);
    const Block own = state.held[static_cast<std::size_t>(state.gradient[static_cast<std::size_t>(produced)])].block;
    emit_.communicate(out, layer, op, *op.communication->backward, own, own, false);
    return;
  }
  const int input = op.inputs[0];
  if (!op.communication->forward) {  // another name for the same value: its part of the gradient is summed, then passed on
    if (op.communication->backward) {
      flow_.own(out, l, produced, state);
      const Block own = state.held[static_cast<std::size_t>(state.gradient[static_cast<std::size_t>(produced)])].block;
      emit_.communicate(out, layer, op, *op.communication->backward, own, own, false);
    }
    flow_.pass(out, l, input, state.gradient[static_cast<std::size_t>(produced)], state);
  } else if (op.communication->backward && flow_.wants(l, input)) {
    const int known = state.gradient[static_cast<std::size_t>(input)];
    const Block to = state.held[static_cast<std::size_t>(flow_.fresh(l, input, state))].block;
    const int index = emit_.communicate(out, layer, op, *op.communication->backward, from, to, true, true);
    if (to == values_.gradient_out) out.at(index).waits.push_back({values_.gradient_sent, to.slot});
    if (known >= 0) flow_.add_beside(out, l, input, known, to, state);
  } else if (op.communication->forward == CollectiveKind::AllGather && flow_.wants(l, input)) {
    const int known = state.gradient[static_cast<std::size_t>(input)];
    const Block to = state.held[static_cast<std::size_t>(flow_.fresh(l, input, state))].block;
    const int index = emit_.take_own_part(out, layer, op, from, to);
    if (to == values_.gradient_out) out.at(index).waits.push_back({values_.gradient_sent, to.slot});
    if (known >= 0) flow_.add_beside(out, l, input, known, to, state);
  }
  flow_.drop(out, produced, state);
}

void BackwardProgram::run(SegmentBuilder& out, int l, int index, const BackwardVariant& variant, BackwardState& state) {
  const ChunkLayer& layer = values_.layer(l);
  const Operator& op = layer.graph->operators[static_cast<std::size_t>(index)];
  if (op.communication) return communicate_back(out, l, op, state);
  const bool loss = is_loss(op.op) && !(op.input_grad == OpWork{});
  const bool reached = loss || std::any_of(op.outputs.begin(), op.outputs.end(),
                                           [&](int value) { return state.gradient[static_cast<std::size_t>(value)] >= 0; });
  if (reached) {
    redo_for(out, l, saved_now(layer, op, state.half), state);
    const bool passes = op.input_grad == OpWork{};
    if (passes && !op.inputs.empty()) flow_.pass_all(out, l, index, state);
    if (!passes) input_gradients(out, l, index, variant, state);
    weight_gradients(out, l, index, variant, state);
  }
  if (!(reached && state.half == Work::I && defers(op)))
    for (const int value : op.saved) used(out, l, value, state);
  for (const int value : op.outputs) flow_.drop(out, value, state);
}

// An embedding's does not: nothing to gather for it.
bool BackwardProgram::reads_parameters(const ChunkLayer& layer) const {
  for (std::size_t i = 0; i < layer.graph->operators.size(); ++i) {
    const Operator& op = layer.graph->operators[i];
    if (!op.weights.empty() && (layer.keep->redone[i] || !(op.input_grad == OpWork{}))) return true;
  }
  return false;
}

void BackwardProgram::begin_layer(SegmentBuilder& out, int l, const BackwardVariant& variant, BackwardState& state) {
  const LayerGraph& graph = *values_.layer(l).graph;
  state.gradient.assign(graph.values.size(), -1);
  if (graph.output >= 0) state.gradient[static_cast<std::size_t>(graph.output)] = state.border;
  if (variant.accumulates) state_.bring_gradients(out, l, state.opened);
}

void BackwardProgram::end_layer(SegmentBuilder& out, int l, const BackwardVariant& variant, BackwardState& state) {
  const LayerGraph& graph = *values_.layer(l).graph;
  state.border = graph.input >= 0 ? state.gradient[static_cast<std::size_t>(graph.input)] : -1;
  if (state.half == Work::I) return leave_layer(l, state);
  state_.sum_layer(out, l, {.accumulates = variant.accumulates, .last = variant.last}, -1);
}

void BackwardProgram::run_layer(SegmentBuilder& out, int l, const BackwardVariant& variant, BackwardState& state) {
  const ChunkLayer& layer = values_.layer(l);
  const LayerGraph& graph = *layer.graph;
  begin_layer(out, l, variant, state);
  state.where = layer.home;
  for (std::size_t v = 0; v < layer.back.size(); ++v)
    if (layer.back[v].buffer.valid()) state.where[v] = layer.back[v];
  state.present = layer.keep->stored;  // by real name
  state.uses = layer.keep->backward_uses;
  state.redone.assign(graph.operators.size(), 0);
  if (graph.input >= 0) state.present[static_cast<std::size_t>(graph.input)] = values_.border_stored(l);

  if (values_.is_last(l)) moves_.fetch(out, l);
  moves_.fetch(out, l - 1);
  const int operators = static_cast<int>(graph.operators.size());
  moves_.before_backward(out, l, operators - 1);
  const bool gathers = reads_parameters(layer);
  if (gathers) state_.visits().start(out, l, false);
  if (layer.keep->whole_layer)
    for (int i = 0; i < operators; ++i)
      if (layer.keep->redone[static_cast<std::size_t>(i)]) redo(out, l, i, state);
  for (int i = operators - 1; i >= 0; --i) {
    if (i + 1 < operators) moves_.before_backward(out, l, i);
    run(out, l, i, variant, state);
    moves_.after_backward(out);
  }
  if (gathers) state_.visits().end(out, l);
  if (state.half == Work::B)
    state_.visits().bring_ahead(out, false);  // on the stream of the sums it would have to wait for them
  end_layer(out, l, variant, state);
}

void BackwardProgram::run_layers(SegmentBuilder& out, const BackwardVariant& variant, BackwardState& state) {
  for (int l = values_.count() - 1; l >= 0; --l) run_layer(out, l, variant, state);
}

}  // namespace foreshard
