// A backward in two segments: the input gradients, which the stage before waits for, and the weight gradients, which nobody
// waits for until the update. Between them live the values that weight gradients read: inputs of layers with weights and the
// gradients of their outputs.
//
//   value that the forward stored      until its last reader: input or weight gradient
//   value made again, read by both     made with the input gradients, in a deferred place
//   gathered again (sequence parallel) made with the weight gradients, which alone read it
//   gradient of an output              made in a deferred place, or stays in the ring where it arrived
#include <algorithm>

#include "strategy/lower/chunk_program.h"

namespace foreshard {

static Use whole(const Block& block) { return {.buffer = block.buffer, .slot = block.slot}; }

// Norms, and residual sums with dropout, make both gradients in one kernel: those stay with the input gradients.
bool ChunkProgram::defers(const Operator& op) {
  return !op.communication && !op.weights.empty() && !(op.weight_grad == OpWork{});
}

// The operator that gathers `value` again for weight gradients only, from a value that is stored; -1: none.
int ChunkProgram::regathered(const Layer& layer, std::size_t value) {
  if (layer.keep->whole_layer || layer.keep->stored[value]) return -1;
  int gather = -1;
  const auto& operators = layer.graph->operators;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = operators[i];
    const bool makes = op.always_recompute && op.communication && op.communication->forward && !op.outputs.empty() &&
                       static_cast<std::size_t>(op.outputs[0]) == value;
    if (makes && layer.keep->stored[real(layer, op.inputs[0])]) gather = static_cast<int>(i);
    const auto reads = [&](const std::vector<int>& values) {
      return std::any_of(values.begin(), values.end(), [&](int v) { return real(layer, v) == value; });
    };
    if (reads(op.saved) && !(defers(op) && is<ops::MatMul>(op.op))) return -1;
    if (layer.keep->redone[i] && reads(op.inputs)) return -1;
  }
  return gather;
}

std::vector<char> ChunkProgram::late_values(const Layer& layer) {
  std::vector<char> late(layer.graph->values.size(), 0);
  for (const Operator& op : layer.graph->operators) {
    if (!defers(op)) continue;
    for (const int saved : op.saved) {
      const std::size_t value = real(layer, saved);
      late[value] = 1;
      if (const int gather = regathered(layer, value); gather >= 0)
        late[real(layer, layer.graph->operators[static_cast<std::size_t>(gather)].inputs[0])] = 1;
    }
  }
  return late;
}

// Where the last stage is on this rank too and tied to this embedding: its weight gradients come first (V placement).
bool ChunkProgram::lends_embedding(const ParameterPlace& place) const {
  if (stage_ != 0 || last_stage() || !lowering_.embedding_here) return false;
  const auto is_tied = [](const LayerGraph& kind) { return std::ranges::any_of(kind.parameters, &Parameter::tied); };
  const bool both = lowering_.tables.schedule.rank_of(lowering_.stages() - 1) == role_index_;
  return both && std::ranges::any_of(lowering_.graph.kinds, is_tied) && place.element == lowering_.embedding_here->element &&
         state_.units[static_cast<std::size_t>(place.unit)].gradient == lowering_.embedding_here->gradient;
}

// Of what the backward of `op` reads, that which has to be here now.
std::vector<int> ChunkProgram::saved_now(const Layer& layer, const Operator& op, Work half) const {
  std::vector<int> values = op.saved;
  if (half == Work::I && defers(op))
    std::erase_if(values, [&](int value) { return regathered(layer, real(layer, value)) >= 0; });
  return values;
}

void ChunkProgram::defer(int l, int index, BackwardState& state) {
  const Operator& op = layers_[static_cast<std::size_t>(l)].graph->operators[static_cast<std::size_t>(index)];
  Deferred deferred{.layer = l, .op = index};
  for (const int value : op.outputs)
    if (const int dy = state.gradient[static_cast<std::size_t>(value)]; dy >= 0) {
      ++state.held[static_cast<std::size_t>(dy)].pending;  // nothing is added to it any more
      deferred.gradients.push_back(dy);
    }
  state.deferred.push_back(std::move(deferred));
}

void ChunkProgram::leave_layer(int l, BackwardState& state) {
  state.left[static_cast<std::size_t>(l)] = {.present = state.present,
                                             .redone = state.redone,
                                             .where = state.where,
                                             .uses = state.uses,
                                             .owns_input = state.left[static_cast<std::size_t>(l)].owns_input};
}

// What weight gradients read on the compute stream may have been made, or read before, by another one: the action ends when that
// is done.
void ChunkProgram::join_kept(SegmentBuilder& out, const BackwardState& state) const {
  std::vector<std::int32_t> others;
  const auto add = [&](const Block& block) {
    for (const int use : out.uses_elsewhere(block, kComputeStream)) others.push_back(use);
  };
  for (const Deferred& deferred : state.deferred)
    for (const int held : deferred.gradients) add(state.held[static_cast<std::size_t>(held)].block);
  for (const LayerLeft& left : state.left)
    for (std::size_t v = 0; v < left.where.size(); ++v)
      if (left.present[v] && left.uses[v] > 0) add(left.where[v]);
  std::erase_if(others, [&](int use) { return out.at(use).stream == transfer(Purpose::ReceiveBackward).stream; });
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  if (!others.empty()) out.emit({.name = "kept", .what = Mark{}, .stream = kComputeStream, .after = std::move(others)});
}

// A place from the input to the weight gradient, for a gradient (`held` >= 0) or a value made again. Chunks with equal layers
// share them, one for each position.
Block ChunkProgram::deferred_home(int l, int value, int held) {
  const bool gradient = held >= 0;
  const auto [known, fresh] = deferred_homes_.try_emplace(gradient ? std::pair{-1, held} : std::pair{l, value});
  if (!fresh) return known->second;
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const Value& shape = layer.graph->values[static_cast<std::size_t>(value)];
  const auto add = [&](int slots, int chunk) {
    const std::string name = role_.layers[layer.id.index()] + "." + shape.name + (gradient ? ".gradient" : "") + ".kept";
    const BufferId buffer = add_buffer(name, Category::Activations, shape.dtype, shape.bytes, slots);
    pool_.deferred_buffers.emplace_back(buffer, chunk);
    return buffer;
  };
  const std::pair<int, int> key{layer.counted, -1 - 2 * value - (gradient ? 1 : 0)};  // values of the forward are not negative
  const bool twice = std::any_of(deferred_homes_.begin(), deferred_homes_.end(), [&](const auto& other) {
    const auto found = pool_.buffers.find(key);
    return found != pool_.buffers.end() && other.second.buffer == found->second;
  });
  if (!pool_.shared || layer.counted < 0 || twice) {
    known->second = {add(slots_.deferred, chunk_), {ChunkArgs::deferred}};
  } else {
    BufferId& pooled = pool_.buffers[key];
    if (!pooled.valid()) pooled = add(pool_.deferred, -1);
    known->second = {pooled, {ChunkArgs::pooled_deferred}};
  }
  return known->second;
}

Segment ChunkProgram::build_weights(const BackwardVariant& variant) {
  SegmentBuilder out("weight gradients." + std::to_string(chunk_), chunk_params(true));
  gathers_ = 0;
  BackwardState state = left_;
  state.half = Work::W;
  state.written_places.clear();
  begin(out);
  if (variant.last && sums_beside_backwards())  // norms wrote their gradients with the input gradients
    mark_ = begin_ >= 0 ? begin_ : out.emit({.name = "begin", .what = Mark{}, .stream = kComputeStream});
  std::size_t next = 0;
  for (int l = static_cast<int>(layers_.size()) - 1; l >= 0; --l) {
    const LayerLeft& left = state.left[static_cast<std::size_t>(l)];
    state.present = left.present, state.redone = left.redone, state.where = left.where, state.uses = left.uses;
    for (; next < state.deferred.size() && state.deferred[next].layer == l; ++next)
      deferred_gradients(out, state.deferred[next], variant, state);
    sum_layer(out, l, variant);
  }
  mark_ = -1;
  return out.take();
}

void ChunkProgram::deferred_gradients(SegmentBuilder& out, const Deferred& deferred, const BackwardVariant& variant,
                                      BackwardState& state) {
  const int l = deferred.layer;
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const Operator& op = layer.graph->operators[static_cast<std::size_t>(deferred.op)];
  redo_for(out, l, op.saved, state);
  Instruction run = compute(layer, op, Phase::WeightGrad);
  for (const int dy : deferred.gradients) run.reads.push_back(whole(state.held[static_cast<std::size_t>(dy)].block));
  for (const int value : op.saved) run.reads.push_back(whole(state.where[real(layer, value)]));
  write_weight_gradients(run, l, op, variant, state);
  out.emit(std::move(run));
  for (const int value : op.saved) used(out, l, value, state);
  for (const int dy : deferred.gradients) {
    BackwardState::Held& held = state.held[static_cast<std::size_t>(dy)];
    if (--held.pending == 0) release_gradient(out, held.block);
  }
}

}  // namespace foreshard
