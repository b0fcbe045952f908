#include "strategy/lower/run_player.h"

#include "core/base/at.h"

namespace foreshard {

static bool reads_parameters(const OpRun& run, const Operator& op) {
  return !op.weights.empty() && (!run.backward || !(op.input_grad == OpWork{}));
}

RunPlayer::RunPlayer(const ChunkFrame& frame, ChunkValues& values, StateProgram& state, OperatorEmitter& emit,
                     BackwardProgram& backward)
    : frame_(frame), values_(values), state_(state), emit_(emit), backward_(backward) {
  for (const ChunkLayer& layer : values_.layers) now_.emplace_back(layer.graph->values.size());
}

// By any name: the input of a layer is the output of the one before.
Block& RunPlayer::now_at(int l, int value) {
  const ChunkLayer& layer = values_.layer(l);
  const std::size_t name = layer.real(value);
  if (l > 0 && static_cast<int>(name) == layer.graph->input)
    return now_[at(l) - 1][at(values_.layers[at(l) - 1].graph->output)];
  return now_[at(l)][name];
}

void RunPlayer::forward(SegmentBuilder& out, const ForwardVariant& variant) {
  gathered_layer_ = -1;
  for (std::size_t life = 0; life < values_.lives.all.size(); ++life)
    if (const ValueLife& it = values_.lives.all[life]; it.from < 0)
      now_[0][at(it.value)] = values_.place_of(static_cast<int>(life));
  for (int k = 0; k < values_.runs->turn; ++k) play(out, k, variant);
  release_gather(out);
  state_.visits().bring_ahead(out, variant.waits_for_parameters);
}

void RunPlayer::backward(SegmentBuilder& out, const BackwardVariant& variant, BackwardState& state) {
  gathered_layer_ = -1;
  for (std::size_t life = 0; life < values_.lives.all.size(); ++life)
    if (const ValueLife& it = values_.lives.all[life]; values_.crosses(it))
      now_[at(it.layer)][at(it.value)] = values_.place_of(static_cast<int>(life));
  const int runs = static_cast<int>(values_.runs->runs.size());
  for (int k = values_.runs->turn; k < runs; ++k)
    if (values_.runs->runs[at(k)].backward)
      play_back(out, k, variant, state);
    else
      play(out, k, {});
  release_gather(out);
}

// An operator in the forward direction, for the first time or again.
void RunPlayer::play(SegmentBuilder& out, int k, const ForwardVariant& variant) {
  const OpRun& at_run = values_.runs->runs[at(k)];
  const int l = at_run.layer;
  const ChunkLayer& layer = values_.layer(l);
  const Operator& op = layer.graph->operators[at(at_run.op)];
  const bool waits = variant.waits_for_parameters && !values_.lives.again[at(k)];
  if (reads_parameters(at_run, op)) gather_for(out, l, waits);
  std::vector<Block> made;
  for (const int life : values_.lives.made[at(k)]) made.push_back(values_.place_of(life));
  if (op.communication) {
    const Block from = now_at(l, op.inputs[0]);
    emit_.communicate(out, layer, op, *op.communication->forward, from, made.empty() ? from : made[0], !made.empty());
  } else {
    Instruction run = emit_.compute(layer, op, values_.lives.again[at(k)] ? Phase::Recompute : Phase::Forward);
    for (const int value : op.inputs) run.reads.push_back(whole(now_at(l, value)));
    for (const int weight : op.weights) {
      run.reads.push_back(state_.weight(l, weight));
      if (waits) state_.wait_for_update(run, l, weight);
    }
    for (const Block& block : made) {
      run.writes.push_back(whole(block)), run.acquires.push_back(block);
      if (values_.output.buffer.valid() && block == values_.output)
        run.waits.push_back({values_.output_sent, values_.output.slot});
    }
    emit_.emit(out, op, std::move(run));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    const ValueLife& life = values_.lives.all[at(values_.lives.made[at(k)][i])];
    now_[at(life.layer)][at(life.value)] = made[i];
  }
  end_lives(out, k);
}

void RunPlayer::end_lives(SegmentBuilder& out, int k) {
  for (const int life : values_.lives.ended[at(k)]) {
    const ValueLife& it = values_.lives.all[at(life)];
    const bool leaves = !frame_.last_stage() && at(it.layer) + 1 == values_.layers.size() &&
                        it.value == values_.layers[at(it.layer)].graph->output;
    if (leaves && k < values_.runs->turn) continue;  // sending it ends its life
    const Block block = values_.place_of(life);
    if (block == values_.input) out.record_after_last_use(block, {values_.input_free, block.slot});
    if (leaves && values_.crosses(it)) out.wait_before_last_use(block, {values_.output_sent, block.slot});
    out.release(block);
  }
}

// One operator of the backward; the first of a layer takes over the gradient of its output, the last one sums its gradients.
void RunPlayer::play_back(SegmentBuilder& out, int k, const BackwardVariant& variant, BackwardState& state) {
  const auto [l, index, backward] = values_.runs->runs[at(k)];
  const LayerGraph& graph = *values_.layer(l).graph;
  const Operator& op = graph.operators[at(index)];
  if (at(index) + 1 == graph.operators.size()) {
    backward_.begin_layer(out, l, variant, state);
    state.where.assign(graph.values.size(), {});
  }
  for (const int value : op.saved) state.where[values_.layer(l).real(value)] = now_at(l, value);
  if (reads_parameters(values_.runs->runs[at(k)], op)) gather_for(out, l, false);
  backward_.run(out, l, index, variant, state);
  end_lives(out, k);
  if (index > 0) return;
  if (gathered_layer_ == l) release_gather(out);
  backward_.end_layer(out, l, variant, state);
}

std::vector<UnitUse> RunPlayer::visits() const {
  std::vector<UnitUse> visits;
  int layer = -1;
  for (int k = 0; k < static_cast<int>(values_.runs->runs.size()); ++k) {
    const OpRun& run = values_.runs->runs[at(k)];
    if (k == values_.runs->turn) layer = -1;
    if (reads_parameters(run, values_.layer(run.layer).graph->operators[at(run.op)]) && layer != run.layer) {
      visits.push_back({run.layer, k < values_.runs->turn ? Phase::Forward : Phase::Backward});
      layer = run.layer;
    }
    if (run.backward && run.op == 0 && layer == run.layer) layer = -1;
  }
  return visits;
}

// ZeRO 3: the parameters of one layer at a time.
void RunPlayer::gather_for(SegmentBuilder& out, int l, bool waits_for_parameters) {
  if (gathered_layer_ == l) return;
  release_gather(out);
  state_.visits().start(out, l, waits_for_parameters);
  gathered_layer_ = l;
}

void RunPlayer::release_gather(SegmentBuilder& out) {
  if (gathered_layer_ >= 0) state_.visits().end(out, gathered_layer_);
  gathered_layer_ = -1;
}

}  // namespace foreshard
