// A chunk under a recomputation schedule: forwards, some of them several times, and backwards in the order of its runs
// (recompute_runs.h). Every life of a value has a place:
//
//   from the forward to the backward        its home, one for each micro-batch in flight
//   inside the forward                      its home, or the scratch places of the layer's kind
//   inside the backward, one layer running  the scratch places of the layer's kind
//   inside the backward, past others        a place of its own: "<layer>.<value>.again"
#include <algorithm>

#include "strategy/lower/chunk_program.h"

namespace foreshard {

static Use whole(const Block& block) { return {.buffer = block.buffer, .slot = block.slot}; }
static std::size_t at(int i) { return static_cast<std::size_t>(i); }

void ChunkProgram::keep_by_runs() {
  runs_ = &lowering_.tables.activations.runs_of_stage[at(stage_)];
  StageLayers graphs;
  std::vector<std::vector<int>> names;
  keeps_.clear();
  for (Layer& layer : layers_) {
    graphs.push_back(layer.graph);
    names.push_back(keep_rule(*layer.graph, {}).same_as);
    KeepRule rule{.same_as = names.back()};
    rule.stored.assign(layer.graph->values.size(), 0), rule.redone.assign(layer.graph->operators.size(), 0);
    keeps_.push_back(std::move(rule));
  }
  lives_ = lives_of(graphs, names, *runs_);
  for (const ValueLife& life : lives_.all) {
    if (!crosses(life)) continue;
    keeps_[at(life.layer)].stored[at(life.value)] = 1;
    if (life.value == graphs[at(life.layer)]->output && at(life.layer) + 1 < layers_.size())
      keeps_[at(life.layer) + 1].stored[at(graphs[at(life.layer) + 1]->input)] = 1;
  }
  for (std::size_t k = at(runs_->turn); k < runs_->runs.size(); ++k)
    if (const OpRun& run = runs_->runs[k]; !run.backward) keeps_[at(run.layer)].redone[at(run.op)] = 1;
  for (std::size_t l = 0; l < layers_.size(); ++l) layers_[l].keep = &keeps_[l];
  for (const Layer& layer : layers_) now_.emplace_back(layer.graph->values.size());
}

// By any name: the input of a layer is the output of the one before.
Block& ChunkProgram::now_at(int l, int value) {
  const Layer& layer = layers_[at(l)];
  const std::size_t name = real(layer, value);
  if (l > 0 && static_cast<int>(name) == layer.graph->input) return now_[at(l) - 1][at(layers_[at(l) - 1].graph->output)];
  return now_[at(l)][name];
}

Block ChunkProgram::place_of(int life) {
  const ValueLife& it = lives_.all[at(life)];
  const Layer& layer = layers_[at(it.layer)];
  if (it.from < runs_->turn) return layer.home[at(it.value)];
  const bool border = it.value == layer.graph->output;
  bool alone = true;
  for (int k = it.from; k <= it.to; ++k) {
    const int running = runs_->runs[at(k)].layer;
    alone &= running == it.layer || (border && running == it.layer + 1);
  }
  if (alone && border) return {border_value_, {it.layer % 2}};
  if (alone) return {scratch(*layer.graph, it.value, false), {0}};
  BufferId& known = again_[{it.layer, it.value}];
  if (!known.valid()) {
    const Value& shape = layer.graph->values[at(it.value)];
    known = add_buffer(role_.layers[layer.id.index()] + "." + shape.name + ".again", Category::Activations, shape.dtype,
                       shape.bytes, 1);
  }
  return {known, {0}};
}

void ChunkProgram::play_segment(SegmentBuilder& out, const ForwardVariant& variant) {
  gathered_layer_ = -1;
  for (std::size_t life = 0; life < lives_.all.size(); ++life)
    if (const ValueLife& it = lives_.all[life]; it.from < 0) now_[0][at(it.value)] = place_of(static_cast<int>(life));
  for (int k = 0; k < runs_->turn; ++k) play(out, k, variant);
  release_gather(out);
}

void ChunkProgram::play_backwards(SegmentBuilder& out, const BackwardVariant& variant, BackwardState& state) {
  gathered_layer_ = -1;
  for (std::size_t life = 0; life < lives_.all.size(); ++life)
    if (const ValueLife& it = lives_.all[life]; crosses(it))
      now_[at(it.layer)][at(it.value)] = place_of(static_cast<int>(life));
  const int runs = static_cast<int>(runs_->runs.size());
  for (int k = runs_->turn; k < runs; ++k)
    if (runs_->runs[at(k)].backward)
      play_back(out, k, variant, state);
    else
      play(out, k, {});
  release_gather(out);
}

// An operator in the forward direction, for the first time or again.
void ChunkProgram::play(SegmentBuilder& out, int k, const ForwardVariant& variant) {
  const OpRun& at_run = runs_->runs[at(k)];
  const int l = at_run.layer;
  const Layer& layer = layers_[at(l)];
  const Operator& op = layer.graph->operators[at(at_run.op)];
  const bool waits = variant.waits_for_parameters && !lives_.again[at(k)];
  if (!op.weights.empty()) gather_for(out, l, waits);
  std::vector<Block> made;
  for (const int life : lives_.made[at(k)]) made.push_back(place_of(life));
  if (op.communication) {
    const Block from = now_at(l, op.inputs[0]);
    emit_communication(out, layer, op, *op.communication->forward, from, made.empty() ? from : made[0], !made.empty());
  } else {
    Instruction run = compute(layer, op, lives_.again[at(k)] ? Phase::Recompute : Phase::Forward);
    for (const int value : op.inputs) run.reads.push_back(whole(now_at(l, value)));
    for (const int weight : op.weights) {
      run.reads.push_back(weight_use(l, weight));
      if (waits) wait_for_unit(run, l, weight);
    }
    for (const Block& block : made) {
      run.writes.push_back(whole(block)), run.acquires.push_back(block);
      if (output_.buffer.valid() && block == output_) run.waits.push_back({output_sent_, output_.slot});
    }
    out.emit(std::move(run));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    const ValueLife& life = lives_.all[at(lives_.made[at(k)][i])];
    now_[at(life.layer)][at(life.value)] = made[i];
  }
  end_lives(out, k);
}

void ChunkProgram::end_lives(SegmentBuilder& out, int k) {
  for (const int life : lives_.ended[at(k)]) {
    const ValueLife& it = lives_.all[at(life)];
    const bool leaves = !last_stage() && at(it.layer) + 1 == layers_.size() && it.value == layers_[at(it.layer)].graph->output;
    if (leaves && k < runs_->turn) continue;  // sending it ends its life
    const Block block = place_of(life);
    if (block == input_) out.record_after_last_use(block, {input_free_, block.slot});
    if (leaves && crosses(it)) out.wait_before_last_use(block, {output_sent_, block.slot});
    out.release(block);
  }
}

// One operator of the backward; the first of a layer takes over the gradient of its output, the last one sums its gradients.
void ChunkProgram::play_back(SegmentBuilder& out, int k, const BackwardVariant& variant, BackwardState& state) {
  const auto [l, index, backward] = runs_->runs[at(k)];
  const LayerGraph& graph = *layers_[at(l)].graph;
  const Operator& op = graph.operators[at(index)];
  if (at(index) + 1 == graph.operators.size()) {
    state.gradient.assign(graph.values.size(), -1);
    if (graph.output >= 0) state.gradient[at(graph.output)] = state.border;
    state.where.assign(graph.values.size(), {});
  }
  for (const int value : op.saved) state.where[real(layers_[at(l)], value)] = now_at(l, value);
  if (!op.weights.empty() && !(op.input_grad == OpWork{})) gather_for(out, l, false);
  backward_operator(out, l, index, variant, state);
  end_lives(out, k);
  if (index > 0) return;
  if (gathered_layer_ == l) release_gather(out);
  state.border = graph.input >= 0 ? state.gradient[at(graph.input)] : -1;
  sum_layer(out, l, variant);
}

// ZeRO 3: the parameters of one layer at a time.
void ChunkProgram::gather_for(SegmentBuilder& out, int l, bool waits_for_parameters) {
  if (gathered_layer_ == l) return;
  release_gather(out);
  gather_layer(out, l, waits_for_parameters);
  gathered_layer_ = l;
}

void ChunkProgram::release_gather(SegmentBuilder& out) {
  if (gathered_layer_ >= 0) release_gathered(out, gathered_layer_);
  gathered_layer_ = -1;
}

}  // namespace foreshard
