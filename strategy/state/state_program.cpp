#include "strategy/state/state_program.h"

#include <algorithm>
#include <utility>

namespace foreshard {

StateProgram::StateProgram(const ChunkFrame& frame)
    : frame_(frame),
      state_(
          lay_out_state(frame.lowering, frame.role, frame.chunk, frame.first_layer(), frame.first_layer() + frame.layers())) {}

void StateProgram::add_events() {
  const int count = std::max(1, units());
  reduced_ = frame_.add_event("reduced", count);
  ready_ = frame_.add_event("parameters_ready", count);
  updated_ = frame_.add_event("updated", count);
  const StateRow& state = last_row();  // rows are cut alike
  if (state.moves_states()) moves_.emplace(frame_, state_, state);
  if (state.takes_gradients_away()) ring_free_ = frame_.add_event("gradient_ring_free", 2);
  add_own_gradients();
  if (!state.brings_parameters()) return;
  Bytes largest = {};
  for (const std::vector<int>& units_of : state_.units_of_layer) {
    Bytes bytes = {};
    for (const int unit : units_of)
      bytes += size_of(state.parameters.dtype) * state_.units[static_cast<std::size_t>(unit)].elements;
    largest = std::max(largest, bytes);
  }
  gathered_slots_ = state.parameters.slots;
  gathered_ = frame_.add_buffer("gathered", Category::Parameters, state.parameters.dtype, largest, gathered_slots_);
  gathered_free_ = frame_.add_event("gathered_free", gathered_slots_);
}

// Of gradients that are cut and away: what a reduce-scatter writes.
void StateProgram::add_own_gradients() {
  Bytes largest = {};
  for (const StateUnit& unit : state_.units)
    if (const StateRow& row = row_of(unit); row.gradients.home != Space::Device && !row.gradients.cut_by.empty())
      largest = std::max(largest, size_of(row.gradients.dtype) * own_elements(unit));
  if (largest == Bytes{}) return;
  own_gradients_ = frame_.add_buffer("gradients.own", Category::Gradients, last_row().gradients.dtype, largest, 2);
  own_free_ = frame_.add_event("own_gradients_free", 2);
}

void StateProgram::begin() {
  gathers_ = 0, ahead_ = -1;
  waited_.assign(state_.units.size(), 0);
}

// Once per unit and run: the first operator that reads it waits for its update and all-gather, or for its way back from the host.
void StateProgram::wait_for_update(Instruction& run, int layer, int parameter) {
  const int unit = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)].unit;
  const StateUnit& of = state_.units[static_cast<std::size_t>(unit)];
  if (of.borrowed) return;  // its owner waited: the first stage runs first
  if (!row_of(of).parameters_arrive() || row_of(of).brings_parameters() || waited_[static_cast<std::size_t>(unit)]) return;
  waited_[static_cast<std::size_t>(unit)] = 1;
  run.waits.push_back({ready_, {unit}});
}

bool StateProgram::brings_parameters(int layer) const {
  const std::vector<int>& units = state_.units_of_layer[static_cast<std::size_t>(layer)];
  return !units.empty() && last_row().brings_parameters();  // rows are cut alike
}

Use StateProgram::weight(int layer, int parameter) const {
  const ParameterPlace& place = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)];
  const StateUnit& unit = state_.units[static_cast<std::size_t>(place.unit)];
  const Bytes each = size_of(row_of(unit).parameters.dtype);
  Use use{.buffer = unit.value, .from = each * place.element, .length = each * place.elements};
  if (!brings_parameters(layer)) return use;
  use.buffer = gathered_;
  use.slot = {gathered_slot_};
  for (const int before : state_.units_of_layer[static_cast<std::size_t>(layer)]) {
    if (before == place.unit) break;
    use.from += each * state_.units[static_cast<std::size_t>(before)].elements;
  }
  return use;
}

Use StateProgram::weight_gradient(int layer, int parameter) const {
  const ParameterPlace& place = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)];
  const StateUnit& unit = state_.units[static_cast<std::size_t>(place.unit)];
  const StateRow::Gradients& gradients = row_of(unit).gradients;
  const Bytes each = size_of(gradients.dtype);
  const bool away = row_of(unit).takes_gradients_away() && !unit.borrowed;
  return {.buffer = away ? unit.full_gradient : unit.gradient,
          .slot = {away ? unit.full_gradient_slot : 0},
          .from = each * place.element,
          .length = each * place.elements};
}

// Brings the layer's units into the next place of the ring, ahead of use when the ring has two: copies what is away, all-gathers what is
// cut; the own part of a unit that is both is copied to where the all-gather wants it.
void StateProgram::gather(SegmentBuilder& out, int layer, LayerId id, bool waits_for_update) {
  if (!brings_parameters(layer)) return;
  gathered_slot_ = gathers_++ % gathered_slots_;
  const Block ring{gathered_, {gathered_slot_}};
  Bytes at = {};
  for (const int index : state_.units_of_layer[static_cast<std::size_t>(layer)]) {
    const StateUnit& unit = this->unit(index);
    const StateRow::Parameters& row = row_of(unit).parameters;
    const Use place{.buffer = gathered_, .slot = ring.slot, .from = at, .length = size_of(row.dtype) * unit.elements};
    std::vector<Instruction> steps;
    if (row.home != Space::Device) steps.push_back(copy_in(unit, place));
    if (!row.cut_by.empty()) {
      steps.push_back(gather_unit(index));
      steps.back().name = "gather";
      steps.back().records.clear();
      if (row.home != Space::Device) steps.back().reads = {place};
      steps.back().writes = {place};
    }
    if (at == Bytes{}) {
      steps.front().acquires.push_back(ring);
      if (gathers_ <= gathered_slots_) steps.front().waits.push_back({gathered_free_, ring.slot});
    }
    if (waits_for_update) steps.front().waits.push_back({ready_, {index}});
    for (Instruction& step : steps) {
      step.layer = id;
      out.emit(std::move(step));
    }
    at += *place.length;
  }
}

Instruction StateProgram::copy_in(const StateUnit& unit, const Use& place) const {
  const StateRow::Parameters& row = row_of(unit).parameters;
  const std::int64_t parts = frame_.lowering.ranks(row.cut_by);
  const bool drive = row.home == Space::Nvme;
  return {.name = "bring parameters",
          .what = Copy{.bytes = size_of(row.dtype) * (unit.elements / parts),
                       .slice = row.cut_by.empty() ? GroupId{} : slice(unit)},
          .stream = frame_.way(drive ? Purpose::ReadDrive : Purpose::CopyFromHost).stream,
          .reads = {{.buffer = unit.value}},
          .writes = {place}};
}

bool StateProgram::gathers_ahead() const { return last_row().parameters.ahead > 0; }

// Before the gradients of the layer behind it are summed: on their stream its parameters would have to wait for that.
void StateProgram::gather_ahead(SegmentBuilder& out, int layer, LayerId id) {
  const int here = gathered_slot_;
  gather(out, layer, id, false);
  ahead_ = layer;
  ahead_slot_ = std::exchange(gathered_slot_, here);
}

void StateProgram::use_gathered(SegmentBuilder& out, int layer, LayerId id) {
  if (ahead_ == layer)
    gathered_slot_ = ahead_slot_;
  else
    gather(out, layer, id, false);
}

void StateProgram::release_gathered(SegmentBuilder& out, int layer) {
  if (!brings_parameters(layer)) return;
  const Block ring{gathered_, {gathered_slot_}};
  out.record_after_last_use(ring, {gathered_free_, ring.slot});
  out.release(ring);
}

bool StateProgram::cuts_gradients(int index) const { return !row_of(unit(index)).gradients.cut_by.empty(); }
bool StateProgram::takes_gradients_away(int index) const { return row_of(unit(index)).takes_gradients_away(); }

void StateProgram::open_gradient(Instruction& run, const Use& to, int index, std::vector<char>& opened) const {
  char& open = opened[static_cast<std::size_t>(index)];
  if (!open) {
    const StateUnit& it = unit(index);
    run.acquires.push_back({to.buffer, to.slot});
    run.waits.push_back({it.standalone ? reduced_ : ring_free_, {it.standalone ? index : it.full_gradient_slot}});
  }
  open = 1;
}

}  // namespace foreshard
