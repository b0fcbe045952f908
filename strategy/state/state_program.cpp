#include "strategy/state/state_program.h"

#include <algorithm>
#include <utility>

namespace foreshard {

StateProgram::StateProgram(const ChunkFrame& frame)
    : frame_(frame),
      state_(
          lay_out_state(frame.lowering, frame.role, frame.chunk, frame.first_layer(), frame.first_layer() + frame.layers())) {}

void StateProgram::add_events(std::vector<UnitUse> visits, LayerId first) {
  const int count = std::max(1, units());
  reduced_ = frame_.add_event("reduced", count);
  ready_ = frame_.add_event("parameters_ready", count);
  updated_ = frame_.add_event("updated", count);
  const StateRow& state = last_row();  // rows are cut alike
  if (state.moves_states()) moves_.emplace(frame_, state_, state);
  if (state.optimizer.kept > 0 && (state.gradients.home != Space::Device || state.parameters.home != Space::Device))
    kept_moves_.emplace(frame_, state_, state, true);
  if (frame_.lowering.weight_slots > 1 && state.moves_states()) {
    for (int index = 0; index < count; ++index)
      version_ready_.push_back(frame_.add_event("parameters_ready." + std::to_string(index), frame_.lowering.weight_slots));
    if (state.optimizer.updated_by == Processor::Host) taken_ = frame_.add_event("gradients_taken", count);
  }
  if (state.writes_gradients_to_slots()) ring_free_ = frame_.add_event("gradient_ring_free", 2);
  add_own_gradients();
  add_norm_places();
  add_root_places();
  order_ = order_of_sums(frame_, state_);
  coded_.emplace(frame_, state_, CodedSums::Events{.reduced = reduced_, .ready = ready_});
  visits_.emplace(frame_, state_, std::move(visits), first, ready_);
}

// Places for gradients that are cut and away: the reduce-scatter writes the rank's part there.
void StateProgram::add_own_gradients() {
  Bytes largest = {};
  for (const StateUnit& unit : state_.units)
    if (const StateRow& row = row_of(unit); row.gradients.home != Space::Device && !row.gradients.cut_by.empty())
      largest = std::max(largest, size_of(row.gradients.dtype) * own_elements(unit));
  if (largest == Bytes{}) return;
  own_gradients_ = frame_.add_buffer("gradients.own", Category::Gradients, last_row().gradients.dtype, largest, kOwnPlaces);
  own_free_ = frame_.add_event("own_gradients_free", kOwnPlaces);
}

// Places on the device for gradients that are away, while their norm is measured.
void StateProgram::add_norm_places() {
  if (!frame_.lowering.tables.update.measures()) return;
  Bytes largest = {};
  for (int index = 0; index < units(); ++index)
    if (leaves(index)) largest = std::max(largest, size_of(row_of(unit(index)).gradients.dtype) * own_elements(unit(index)));
  if (largest == Bytes{}) return;
  norm_places_ = frame_.add_buffer("gradients.measured", Category::Gradients, last_row().gradients.dtype, largest, kOwnPlaces);
  norm_free_ = frame_.add_event("measured_free", kOwnPlaces);
}

// Places in which the root of a gather receives gradients: one for each member that may send at once by the credit, at least one. All
// members run the same program, so all of them acquire the places, but only the root's hold data (core/plan/root_places.h).
void StateProgram::add_root_places() {
  if (frame_.lowering.communication(Purpose::GradientSum).algorithm != Algorithm::GatherToRoot) return;
  Bytes largest = {};
  for (const StateUnit& unit : state_.units)
    if (!unit.borrowed)
      for (const GradientSum& sum : row_of(unit).gradients.sums)
        if (!sum.tied_stages && is_summed(sum))
          largest = std::max(
              largest, root_places(size_of(row_of(unit).gradients.dtype) * unit.elements, frame_.lowering.ranks(sum.over)));
  if (largest > Bytes{})
    root_places_ = frame_.add_buffer("gathered", Category::Communication, last_row().gradients.dtype, largest, 1);
}

Bytes StateProgram::root_places(Bytes bytes, int ranks) const {
  const Bytes credit = frame_.lowering.communication(Purpose::GradientSum).credit;
  return bytes * std::clamp<std::int64_t>(credit.value / std::max<std::int64_t>(1, bytes.value), 1, ranks - 1);
}

void StateProgram::begin(bool backward, const Slot& weights) {
  weights_ = weights;
  visits_->begin(backward);
  coded_->begin();
  summed_.clear();
  next_ = 0;
  waited_.assign(state_.units.size(), 0);
}

// The first operator of a segment that reads a unit waits for its update and all-gather, or for its copy back from the host.
void StateProgram::wait_for_update(Instruction& run, int layer, int parameter) {
  const int unit = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)].unit;
  const StateUnit& of = state_.units[static_cast<std::size_t>(unit)];
  if (of.borrowed) return;  // its owner waited: the first stage runs first
  if (!row_of(of).parameters_arrive() || row_of(of).brings_parameters() || waited_[static_cast<std::size_t>(unit)]) return;
  waited_[static_cast<std::size_t>(unit)] = 1;
  run.waits.push_back(ready(unit, weights_));
}

EventUse StateProgram::ready(int unit, const Slot& version) const {
  if (version_ready_.empty()) return {ready_, {unit}};
  return {version_ready_[static_cast<std::size_t>(unit)], version};
}

void StateProgram::wait_for_taken(Instruction& run, int unit, std::vector<char>& written) const {
  if (!taken_.valid() || !this->unit(unit).states_away || std::exchange(written[static_cast<std::size_t>(unit)], 1)) return;
  run.waits.push_back({taken_, {unit}});
}

Use StateProgram::weight(int layer, int parameter) const {
  const ParameterPlace& place = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)];
  const StateUnit& unit = state_.units[static_cast<std::size_t>(place.unit)];
  const Bytes each = size_of(row_of(unit).parameters.dtype);
  Use use{.buffer = unit.value,
          .slot = unit.frozen ? Slot{} : weights_,
          .from = each * place.element,
          .length = each * place.elements};
  if (!visits_->brings_unit(place.unit)) return use;
  const Block block = visits_->read_block();
  use.buffer = block.buffer, use.slot = block.slot, use.from += visits_->read_from(layer);
  for (const int before : state_.units_of_layer[static_cast<std::size_t>(layer)]) {
    if (before == place.unit) break;
    if (visits_->brings_unit(before)) use.from += each * state_.units[static_cast<std::size_t>(before)].elements;
  }
  return use;
}

Use StateProgram::weight_gradient(int layer, int parameter) const {
  const ParameterPlace& place = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)];
  const StateUnit& unit = state_.units[static_cast<std::size_t>(place.unit)];
  const StateRow::Gradients& gradients = row_of(unit).gradients;
  const Bytes each = size_of(gradients.dtype);
  const bool away = row_of(unit).writes_gradients_to_slots() && !unit.borrowed;
  return {.buffer = away ? unit.full_gradient : unit.gradient,
          .slot = {away ? unit.full_gradient_slot : 0},
          .from = each * place.element,
          .length = each * place.elements};
}

bool StateProgram::cuts_gradients(int index) const { return !row_of(unit(index)).gradients.cut_by.empty(); }
bool StateProgram::writes_gradients_to_slots(int index) const { return row_of(unit(index)).writes_gradients_to_slots(); }

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
