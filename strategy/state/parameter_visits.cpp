#include "strategy/state/parameter_visits.h"

#include <algorithm>
#include <utility>

#include "core/base/at.h"

namespace foreshard {

Instruction all_gather(const ChunkFrame& frame, const StateUnit& unit, const Use& from, const Use& to) {
  const StateRow& row = frame.lowering.tables.state[at(unit.row)];
  const CommunicationRow& way = frame.lowering.communication(Purpose::ParameterGather);
  return {.name = "all-gather parameters",
          .what = Collective{.kind = CollectiveKind::AllGather,
                             .algorithm = way.algorithm.value_or(Algorithm::Ring),
                             .group = frame.lowering.group(row.optimizer.cut_by, way.stream),
                             .bytes = size_of(row.parameters.dtype) * unit.elements,
                             .dtype = row.parameters.dtype},
          .stream = way.stream,
          .reads = {from},
          .writes = {to}};
}

ParameterVisits::ParameterVisits(const ChunkFrame& frame, const ChunkState& state, std::vector<UnitUse> uses, LayerId first,
                                 EventId ready)
    : frame_(frame), state_(state), uses_(std::move(uses)), first_(first), ready_(ready) {
  const ParameterStays& stays = last_row().parameters.stays;
  std::erase_if(uses_, [&](const UnitUse& use) { return !brings(use.unit); });
  if (uses_.empty()) return;
  own_moments_ = !stays.one_size;
  const auto backward = [](const UnitUse& use) { return use.phase != Phase::Forward; };
  turn_ = static_cast<int>(std::ranges::find_if(uses_, backward) - uses_.begin());
  lay_units();
  residency_ = residency_of(stays, units_.units, uses_);
  FS_ASSERT(residency_.persistent.empty());
  stay_of_ = stays_of_uses(uses_, residency_);
  places_ = places_of_stays(units_.units, residency_, stays.one_size);
  staged_.assign(uses_.size(), 0);
  for (const UnitBuffer& buffer : residency_.buffers)
    if (buffer.kind == UnitBuffer::Kind::Staging)
      for (int moment = buffer.from; moment <= buffer.until; ++moment) staged_[at(moment)] = 1;
  add_sizes();
}

void ParameterVisits::add_sizes() {
  const DType dtype = last_row().parameters.dtype;
  const bool staged = std::ranges::count(staged_, 1) > 0;
  const bool by_size = !own_moments_ && frame_.lowering.places_by_size();
  const bool any_crosses = std::ranges::any_of(residency_.stays, [&](const Stay& stay) { return crosses(stay); });
  for (const Places::Size& size : places_.sizes) {
    std::string tail;
    if (places_.sizes.size() > 1) tail.append(" ").append(std::to_string(sizes_.size()));
    const Bytes bytes = size_of(dtype) * size.elements;
    Size& of = sizes_.emplace_back();
    if (!by_size) of.buffer = frame_.add_buffer(kGatheredPlaces + tail, Category::Parameters, dtype, bytes, size.places);
    of.free = frame_.add_event("gathered_free" + tail, size.places);
    if (any_crosses) of.arrived = frame_.add_event("gathered_there" + tail, size.places);
    if (!staged) continue;
    of.copy = frame_.add_buffer("copied_out" + tail, Category::Parameters, dtype, bytes, 1);
    of.copy_free = frame_.add_event("copied_out_free" + tail, 1);
  }
  if (by_size)
    for (const Stay& stay : residency_.stays) {
      const std::int64_t elements = units_.units[at(stay.unit)].elements;
      BufferId& buffer = by_elements_[elements];
      if (buffer.valid()) continue;
      buffer = frame_.add_buffer(kGatheredPlaces + ".size " + std::to_string(by_elements_.size() - 1), Category::Parameters,
                                 dtype, size_of(dtype) * elements, places_.sizes.front().places);
    }
  if (own_moments_) passed_ = frame_.add_event("passed", 2);
}

bool ParameterVisits::brings(int layer) const {
  return std::ranges::any_of(state_.units_of_layer[at(layer)], [&](int unit) { return brings_unit(unit); });
}

bool ParameterVisits::brings_unit(int unit) const { return row_of(state_.units[at(unit)]).brings_parameters(); }

// [layer]: all transferred units of a layer as one unit, since they are transferred together.
std::vector<ParameterUnit> ParameterVisits::layers() const {
  std::vector<ParameterUnit> layers;
  for (const std::vector<int>& units_of : state_.units_of_layer) {
    ParameterUnit& all = layers.emplace_back();
    for (const int unit : units_of)
      if (brings_unit(unit)) all.elements += state_.units[at(unit)].elements;
  }
  return layers;
}

// Maps layers to units of the residency. The layers of a unit lie one behind the other; from_ gets their offsets.
void ParameterVisits::lay_units() {
  const std::vector<ParameterUnit> all = layers();
  units_ = units_of_layers(last_row().parameters.stays, all);
  std::vector<std::int64_t> filled(units_.units.size(), 0);
  for (std::size_t layer = 0; layer < all.size(); ++layer) {
    std::int64_t& before = filled[at(units_.of_layer[layer])];
    from_.push_back(size_of(last_row().parameters.dtype) * before);
    before += all[layer].elements;
  }
  for (UnitUse& use : uses_) use.unit = units_.of_layer[at(use.unit)];
}

void ParameterVisits::begin(bool backward) {
  now_ = begin_ = backward ? turn_ : 0;
  const auto due = [&](const Stay& stay) { return stay.brought >= begin_; };
  next_ = static_cast<int>(std::ranges::find_if(residency_.stays, due) - residency_.stays.begin());
  taken_.clear();
  last_read_.assign(uses_.size(), -1);
}

const ParameterVisits::Size& ParameterVisits::size_of_stay(int stay) const {
  return sizes_[at(places_.of_stay[at(stay)].size)];
}

BufferId ParameterVisits::buffer_of_stay(int index) const {
  if (by_elements_.empty()) return size_of_stay(index).buffer;
  return by_elements_.at(units_.units[at(stay(index).unit)].elements);
}

Block ParameterVisits::place_of(int stay) const { return {buffer_of_stay(stay), {places_.of_stay[at(stay)].place}}; }

Block ParameterVisits::read_block() const {
  return staged_[at(now_)] ? Block{size_of_stay(stay_now()).copy, {0}} : place_of(stay_now());
}

bool ParameterVisits::take(const Block& place) {
  if (std::ranges::find(taken_, place) != taken_.end()) return false;
  taken_.push_back(place);
  return true;
}

void ParameterVisits::bring(SegmentBuilder& out, int index, bool waits_for_update) {
  for (std::size_t layer = 0; layer < units_.of_layer.size(); ++layer)
    if (units_.of_layer[layer] == stay(index).unit) bring_layer(out, index, static_cast<int>(layer), waits_for_update);
  const Block block = place_of(index);
  if (crosses(stay(index))) out.record_after_last_use(block, {size_of_stay(index).arrived, block.slot});
}

// Copies in units that are away and all-gathers units that are cut. Of a unit that is both, the rank's part is copied into its slice of the
// place, where the all-gather reads it.
void ParameterVisits::bring_layer(SegmentBuilder& out, int index, int layer, bool waits_for_update) {
  const Block block = place_of(index);
  Bytes offset = from_[at(layer)];
  for (const int unit_index : state_.units_of_layer[at(layer)]) {
    if (!brings_unit(unit_index)) continue;
    const StateUnit& unit = state_.units[at(unit_index)];
    const StateRow::Parameters& row = row_of(unit).parameters;
    const bool away = row.home != Space::Device;
    const Use place{.buffer = block.buffer, .slot = block.slot, .from = offset, .length = size_of(row.dtype) * unit.elements};
    std::vector<Instruction> steps;
    if (away) steps.push_back(copy_in(unit, place));
    if (!row.cut_by.empty()) {
      steps.push_back(all_gather(frame_, unit, away ? place : Use{.buffer = unit.value}, place));
      steps.back().name = "gather";
    }
    if (offset == Bytes{}) {
      steps.front().acquires.push_back(block);
      if (take(block) || !by_elements_.empty()) steps.front().waits.push_back({size_of_stay(index).free, block.slot});
    }
    if (own_moments_) begin_with_moment(steps.front(), stay(index).brought);
    if (waits_for_update && unit.updated()) steps.front().waits.push_back({ready_, {unit_index}});
    for (Instruction& step : steps) {
      step.layer = {first_.value + layer};
      out.emit(std::move(step));
    }
    offset += *place.length;
  }
}

Instruction ParameterVisits::copy_in(const StateUnit& unit, const Use& place) const {
  const StateRow& row = row_of(unit);
  const Kinds& cut_by = row.parameters.cut_by;
  const StreamId gathers = frame_.lowering.communication(Purpose::ParameterGather).stream;
  return {.name = "bring parameters",
          .what = Copy{.bytes = size_of(row.parameters.dtype) * (unit.elements / frame_.lowering.ranks(cut_by)),
                       .slice = cut_by.empty() ? GroupId{} : frame_.lowering.group(row.optimizer.cut_by, gathers)},
          .stream = frame_.copy_way(row.parameters.home, false).stream,
          .reads = {{.buffer = unit.value}},
          .writes = {place}};
}

// Makes a transfer wait for the end of the visit before its moment: an instruction of this segment or, at the begin of a segment, the ends
// of the last forward and the last backward.
void ParameterVisits::begin_with_moment(Instruction& transfer, int moment) const {
  if (moment > begin_) return transfer.after.push_back(last_read_[at(moment) - 1]);
  for (const int pass : {0, 1}) transfer.waits.push_back({passed_, {pass}});
}

void ParameterVisits::start(SegmentBuilder& out, int layer, bool waits_for_update) {
  if (!brings(layer)) return;
  FS_ASSERT(uses_[at(now_)].unit == units_.of_layer[at(layer)]);
  bring_ahead(out, waits_for_update);
  if (next_ == stay_now()) bring(out, next_++, waits_for_update);
  if (now_ == stay(stay_now()).first_use && crosses(stay(stay_now())))
    out.emit({.name = "parameters are there",
              .what = Mark{},
              .stream = kComputeStream,
              .layer = {first_.value + layer},
              .waits = {{size_of_stay(stay_now()).arrived, place_of(stay_now()).slot}}});
  if (staged_[at(now_)]) copy_out(out, layer);
}

void ParameterVisits::copy_out(SegmentBuilder& out, int layer) {
  const Block copy = read_block();
  Instruction run{.name = "copy out",
                  .what = Copy{.bytes = frame_.role.buffers[copy.buffer.index()].bytes},
                  .stream = kComputeStream,
                  .layer = {first_.value + layer},
                  .reads = {whole(place_of(stay_now()))},
                  .writes = {whole(copy)},
                  .acquires = {copy}};
  if (take(copy)) run.waits.push_back({size_of_stay(stay_now()).copy_free, copy.slot});
  out.emit(std::move(run));
}

void ParameterVisits::end(SegmentBuilder& out, int layer) {
  if (!brings(layer)) return;
  const Block read = read_block(), place = place_of(stay_now());
  const Size& size = size_of_stay(stay_now());
  const StreamId gathers = frame_.lowering.communication(Purpose::ParameterGather).stream;
  const std::vector<int> reads = out.uses_elsewhere(read, gathers);
  const int last = *std::max_element(reads.begin(), reads.end());
  last_read_[at(now_)] = last;
  const int pass = now_ < turn_ ? 0 : 1, end_of_pass = pass == 0 ? turn_ : static_cast<int>(uses_.size());
  if (own_moments_ && now_ + 1 == end_of_pass) out.record_after_last_use(read, {passed_, {pass}});
  if (staged_[at(now_)]) {
    out.use_until(place, last);
    out.record_after_last_use(read, {size.copy_free, read.slot});
    out.release(read);
  }
  release_left(out);
  ++now_;
}

// Releases the places of stays that end with this moment: that of the unit just read, or of idle units that make room for the next one.
void ParameterVisits::release_left(SegmentBuilder& out) {
  for (int index = 0; index < next_; ++index) {
    if (stay(index).released_after != now_) continue;
    const Block place = place_of(index);
    if (index != stay_now()) out.use_until(place, last_read_[at(now_)]);
    out.record_after_last_use(place, {size_of_stay(index).free, place.slot});
    out.release(place);
    take(place);
  }
}

void ParameterVisits::bring_ahead(SegmentBuilder& out, bool waits_for_update) {
  while (next_ < static_cast<int>(residency_.stays.size()) && stay(next_).brought < now_) bring(out, next_++, waits_for_update);
}

}  // namespace foreshard
