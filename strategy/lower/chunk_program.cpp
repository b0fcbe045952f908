#include "strategy/lower/chunk_program.h"

#include <algorithm>

#include "strategy/lower/cut_segment.h"
#include "strategy/program/delayed_gradients.h"

namespace foreshard {

ChunkProgram::ChunkProgram(const ChunkFrame& frame, const ChunkSlots& slots, ActivationPool& pool)
    : frame_(frame),
      state_(frame),
      values_(frame, slots, pool),
      parts_(frame_, values_.layers),
      moves_(frame, values_),
      emit_(frame, values_),
      forward_(frame, values_, moves_, state_, emit_),
      flow_(frame, values_, emit_),
      backward_(frame, values_, moves_, state_, emit_, flow_),
      player_(frame, values_, state_, emit_, backward_) {
  values_.add_rings();
  state_.add_events(visits(), values_.layer(0).id);
  values_.add_homes();
  moves_.add_events();
  forward_.add_events();
}

void ChunkProgram::meet(const ChunkProgram* before, const ChunkProgram* after) {
  values_.before = before ? &before->values_ : nullptr;
  values_.after = after ? &after->values_ : nullptr;
}

std::vector<UnitUse> ChunkProgram::visits() const {
  if (values_.runs) return player_.visits();
  std::vector<UnitUse> visits;
  for (int l = 0; l < values_.count(); ++l) visits.push_back({l, Phase::Forward});
  for (int l = values_.count() - 1; l >= 0; --l)
    if (backward_.reads_parameters(values_.layer(l))) visits.push_back({l, Phase::Backward});
  return visits;
}

std::vector<Param> ChunkProgram::params() const { return chunk_params(frame_.splits(), frame_.lowering.weight_slots > 1); }
// The last parameter, where there are several versions.
Slot ChunkProgram::weights_slot() const {
  if (frame_.lowering.weight_slots == 1) return {};
  return {ParamId{static_cast<std::int32_t>(params().size()) - 1}};
}

Segment ChunkProgram::receive() {
  SegmentBuilder out("receive." + std::to_string(frame_.chunk), params());
  forward_.receive_ahead(out);
  return out.take();
}

Segment ChunkProgram::forward(const ForwardVariant& variant) {
  SegmentBuilder out("forward." + std::to_string(frame_.chunk), params());
  state_.begin(false, weights_slot());
  moves_.begin();
  emit_.begin(out);
  if (variant.received)
    forward_.await_input(out);
  else
    forward_.receive_input(out);
  if (values_.runs)
    player_.forward(out, variant);
  else
    forward_.run_layers(out, variant);
  emit_.end(out);
  forward_.send_output(out);
  Segment segment = cut_segment(out.take(), parts_);
  for (Instruction& instruction : segment.instructions)
    if (std::holds_alternative<Mark>(instruction.what)) instruction.writes.clear();  // await_input: it writes nothing
  return segment;
}

Segment ChunkProgram::backward(const BackwardVariant& variant) {
  if (variant.half == Work::W) return cut_segment(backward_.weights(variant, left_), parts_);
  flow_.begin_trial();
  Segment first = build_backward(variant);
  return delayed(cut_segment(flow_.learn(left_) ? build_backward(variant) : std::move(first), parts_));
}

Segment ChunkProgram::delayed(Segment backward) const {
  const StreamId communication = frame_.lowering.hidden_stream();
  if (!frame_.lowering.tables.schedule.delays_weights || communication == kComputeStream) return backward;
  std::vector<LayerId> layers;  // embedding and head have no communication of their own
  for (const ChunkLayer& layer : values_.layers)
    if (layer.counted >= 0) layers.push_back(layer.id);
  return delay_weight_gradients(std::move(backward), communication, layers);
}

// The whole backward waits for its gradient, what is recomputed too, as in every framework: instruction 0 receives it.
static void wait_for_gradient(Segment& segment) {
  for (Instruction& instruction : segment.instructions) {
    if (instruction.stream != kComputeStream) continue;
    std::erase(instruction.after, 0);
    instruction.after.push_back(0);
    return;
  }
}

Segment ChunkProgram::build_backward(const BackwardVariant& variant) {
  SegmentBuilder out((variant.half == Work::I ? "input gradients." : "backward.") + std::to_string(frame_.chunk), params());
  state_.begin(true, weights_slot());
  moves_.begin();
  BackwardState state;
  state.half = variant.half;
  if (variant.half == Work::I) state.left.resize(values_.layers.size());
  state.opened.assign(state_.layout().units.size(), 0);
  state.taken = state.opened;
  flow_.receive(out, state);
  emit_.begin(out);
  if (values_.runs)
    player_.backward(out, variant, state);
  else
    backward_.run_layers(out, variant, state);
  state_.update_summed(out);
  flow_.send(out, state);
  if (variant.half == Work::I) backward_.join_kept(out, state);
  Segment segment = out.take();
  if (!frame_.last_stage() && !values_.after && flow_.arrives()) wait_for_gradient(segment);
  left_ = std::move(state);
  return segment;
}

}  // namespace foreshard
