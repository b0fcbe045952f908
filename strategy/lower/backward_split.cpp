// A backward in two segments: the input gradients, which the stage before waits for, and the weight gradients, which nobody
// waits for until the update. Between them live the values that weight gradients read: inputs of layers with weights and the
// gradients of their outputs.
//
//   value that the forward stored      until its last reader: input or weight gradient
//   value made again, read by both     made with the input gradients, in a deferred place
//   gathered again (sequence parallel) made with the weight gradients, which alone read it
//   gradient of an output              made in a deferred place, or stays in the ring where it arrived
#include <algorithm>

#include "strategy/lower/backward_program.h"

namespace foreshard {

// Where the last stage is on this rank too and tied to this embedding: its weight gradients come first (V placement).
bool BackwardProgram::lends_embedding(const ParameterPlace& place) const {
  if (!frame_.first_stage() || frame_.last_stage() || !frame_.lowering.embedding_here) return false;
  const auto is_tied = [](const LayerGraph& kind) { return std::ranges::any_of(kind.parameters, &Parameter::tied); };
  const bool both = frame_.lowering.tables.schedule.ends_hold_both();
  return both && std::ranges::any_of(frame_.lowering.graph.kinds, is_tied) &&
         place.element == frame_.lowering.embedding_here->element &&
         state_.unit(place.unit).gradient == frame_.lowering.embedding_here->gradient;
}

// Of what the backward of `op` reads, that which has to be here now.
std::vector<int> BackwardProgram::saved_now(const ChunkLayer& layer, const Operator& op, Work half) const {
  std::vector<int> values = op.saved;
  if (half == Work::I && defers(op))
    std::erase_if(values, [&](int value) { return regathered(layer, layer.real(value)) >= 0; });
  return values;
}

void BackwardProgram::defer(int l, int index, BackwardState& state) {
  const Operator& op = values_.layer(l).graph->operators[static_cast<std::size_t>(index)];
  Deferred deferred{.layer = l, .op = index};
  for (const int value : op.outputs)
    if (const int dy = state.gradient[static_cast<std::size_t>(value)]; dy >= 0) {
      ++state.held[static_cast<std::size_t>(dy)].pending;  // nothing is added to it any more
      deferred.gradients.push_back(dy);
    }
  state.deferred.push_back(std::move(deferred));
}

void BackwardProgram::leave_layer(int l, BackwardState& state) {
  state.left[static_cast<std::size_t>(l)] = {.present = state.present,
                                             .redone = state.redone,
                                             .where = state.where,
                                             .uses = state.uses,
                                             .owns_input = state.left[static_cast<std::size_t>(l)].owns_input};
}

// What weight gradients read on the compute stream may have been made, or read before, by another one: the action ends when that
// is done.
void BackwardProgram::join_kept(SegmentBuilder& out, const BackwardState& state) const {
  std::vector<std::int32_t> others;
  const auto add = [&](const Block& block) {
    for (const int use : out.uses_elsewhere(block, kComputeStream)) others.push_back(use);
  };
  for (const Deferred& deferred : state.deferred)
    for (const int held : deferred.gradients) add(state.held[static_cast<std::size_t>(held)].block);
  for (const LayerBackwardEnd& left : state.left)
    for (std::size_t v = 0; v < left.where.size(); ++v)
      if (left.present[v] && left.uses[v] > 0) add(left.where[v]);
  std::erase_if(others, [&](int use) { return out.at(use).stream == frame_.way(Purpose::ReceiveBackward).stream; });
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  if (!others.empty()) out.emit({.name = "kept", .what = Mark{}, .stream = kComputeStream, .after = std::move(others)});
}

Segment BackwardProgram::weights(const BackwardVariant& variant, BackwardState state) {
  SegmentBuilder out("weight gradients." + std::to_string(frame_.chunk), chunk_params(true));
  state_.begin(true, {});
  state.half = Work::W;
  state.written_places.clear();
  emit_.begin(out);
  int mark = -1;
  if (variant.last && state_.sums_beside_backwards())  // norms wrote their gradients with the input gradients
    mark = emit_.begins() >= 0 ? emit_.begins() : out.emit({.name = "begin", .what = Mark{}, .stream = kComputeStream});
  std::size_t next = 0;
  for (int l = static_cast<int>(values_.layers.size()) - 1; l >= 0; --l) {
    const LayerBackwardEnd& left = state.left[static_cast<std::size_t>(l)];
    state.present = left.present, state.redone = left.redone, state.where = left.where, state.uses = left.uses;
    for (; next < state.deferred.size() && state.deferred[next].layer == l; ++next)
      deferred_gradients(out, state.deferred[next], variant, state);
    state_.sum_layer(out, l, {.accumulates = variant.accumulates, .last = variant.last}, mark);
  }
  return out.take();
}

void BackwardProgram::deferred_gradients(SegmentBuilder& out, const Deferred& deferred, const BackwardVariant& variant,
                                         BackwardState& state) {
  const int l = deferred.layer;
  const ChunkLayer& layer = values_.layer(l);
  const Operator& op = layer.graph->operators[static_cast<std::size_t>(deferred.op)];
  redo_for(out, l, op.saved, state);
  Instruction run = emit_.compute(layer, op, Phase::WeightGrad);
  for (const int dy : deferred.gradients) run.reads.push_back(whole(state.held[static_cast<std::size_t>(dy)].block));
  for (const int value : op.saved) run.reads.push_back(whole(state.where[layer.real(value)]));
  write_weight_gradients(run, l, op, variant, state);
  emit_.emit(out, op, std::move(run));
  for (const int value : op.saved) used(out, l, value, state);
  for (const int dy : deferred.gradients) {
    BackwardState::Held& held = state.held[static_cast<std::size_t>(dy)];
    if (--held.pending == 0) flow_.release(out, held.block);
  }
}

}  // namespace foreshard
