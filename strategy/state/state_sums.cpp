// Gradient sums over replicas, bucket by bucket.
#include <algorithm>

#include "strategy/state/state_program.h"

namespace foreshard {

static Use part_of(BufferId buffer, int slot = 0) { return {.buffer = buffer, .slot = {slot}}; }

bool StateProgram::is_summed(const GradientSum& sum) const {
  return sum.tied_stages ? frame_.lowering.group_of_roles(LayoutGroup::Roles::Tied).valid()
                         : frame_.lowering.ranks(sum.over) > 1;
}

bool StateProgram::leaves(int unit) const {
  const StateUnit& it = state_.units[static_cast<std::size_t>(unit)];
  return it.updated() && row_of(it).gradients.home != Space::Device;
}

bool StateProgram::is_summed(int unit) const {
  const StateUnit& it = state_.units[static_cast<std::size_t>(unit)];
  return it.updated() && std::ranges::any_of(row_of(it).gradients.sums, [&](const GradientSum& sum) { return is_summed(sum); });
}

// Emits those of the unit's sums that are due, in their order, the first one after instruction `begins`. A sum over the ranks that the
// optimizer is sharded over is a reduce-scatter, in place or from a whole gradient into the rank's part, which accumulates; the sums after
// it are all-reduces of the rank's part. Gradients whose home is not the device are copied out afterwards; a rank's part that accumulates
// is copied in before.
void StateProgram::sum_unit(SegmentBuilder& out, int index, const RunPart& part, bool at_end, int begins,
                            const SumPart* piece) {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const StateRow& row = row_of(unit);
  const Bytes each = size_of(row.gradients.dtype);
  const bool cut = !row.gradients.cut_by.empty(), leaves = this->leaves(index), in_place = leaves || !row.gradients.kept;
  const CommunicationRow& way = frame_.lowering.communication(Purpose::GradientSum);
  Use full = cut || in_place ? part_of(unit.full_gradient, unit.full_gradient_slot) : part_of(unit.gradient);
  if (piece) full.from = each * piece->first, full.length = each * piece->elements;
  Use own = in_place ? full : part_of(unit.gradient);
  if (leaves && cut) own = bring_own_gradient(out, index, part);
  const GroupId shards = frame_.lowering.group(row.optimizer.cut_by, way.stream);
  bool scattered = false;
  int last = -1;
  for (const GradientSum& sum : row.gradients.sums) {
    const bool scatters = foreshard::scatters(row, sum);
    const bool of_part = scattered || (sum.tied_stages && cut);
    scattered |= scatters;
    const bool due = at_end                                          ? sum.when == GradientSum::When::AtEnd
                     : sum.when == GradientSum::When::LastMicrobatch ? part.last
                                                                     : sum.when == GradientSum::When::EachMicrobatch;
    if (!due || !is_summed(sum)) continue;
    if (sum.coding) {
      Use from = full;
      if (sum.first.empty() && (from.length || cut || unit.used < unit.elements)) from.length = each * unit.used;
      coded_->send(out, index, from, part);
      if (cut) release_full_gradient(out, unit);
      continue;
    }
    const bool sliced = of_part && !cut && !sum.tied_stages;  // the buffer has full size: only the rank's slice of it
    const Use& from = of_part || sum.tied_stages ? own : full;
    const std::int64_t whole = piece ? piece->elements : unit.elements;
    const std::int64_t elements = sliced || (of_part && cut) ? whole / frame_.lowering.ranks(row.optimizer.cut_by) : whole;
    Instruction run{.name = sum.name,
                    .what = Collective{.kind = scatters ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce,
                                       .algorithm = way.algorithm.value_or(Algorithm::Ring),
                                       .group = sum.tied_stages ? frame_.lowering.group_of_roles(LayoutGroup::Roles::Tied)
                                                                : frame_.lowering.group(sum.over, way.stream),
                                       .bytes = each * elements,
                                       .dtype = row.gradients.dtype},
                    .stream = way.stream,
                    .reads = {from},
                    .writes = {scatters ? own : from}};
    if (sliced) std::get<Collective>(run.what).slice = shards;
    if (scatters && cut && part.accumulates) std::get<Collective>(run.what).accumulate = true;
    if (scatters && cut && !part.accumulates && !leaves)
      run.waits.push_back({ready_, {index}});  // the last update has read the part
    if (scatters && cut && leaves && !part.accumulates) open_own_gradient(run, own);
    if (sum.tied_stages) run.records.push_back({reduced_, {index}});
    if (root_places_.valid() && !scatters && !sum.tied_stages)
      run.acquires.push_back({root_places_, {0}}), run.releases.push_back({root_places_, {0}});
    const int emitted = out.emit(std::move(run));
    if (begins >= 0 && (last < 0 || sum.tied_stages)) out.at(emitted).after.push_back(begins);
    if (!sum.tied_stages) last = emitted;
    if (scatters && cut) release_full_gradient(out, unit);
  }
  if (leaves) return send_gradient(out, index, own, part, scattered && part.last);
  if (last >= 0 && (part.last || unit.standalone) && (!piece || piece->last))
    out.at(last).records.push_back({reduced_, {index}});
}

void StateProgram::release_full_gradient(SegmentBuilder& out, const StateUnit& unit) const {
  const Block block{unit.full_gradient, {unit.full_gradient_slot}};
  if (!unit.standalone) out.record_after_last_use(block, {ring_free_, block.slot});
  out.release(block);
}

// ---- gradients that are away: between their home and places on the device ----

Instruction StateProgram::copy_gradient(const StateUnit& unit, const Use& place, bool in, bool own_slice) const {
  const StateRow& row = row_of(unit);
  const std::int64_t parts = own_slice || !row.gradients.cut_by.empty() ? frame_.lowering.ranks(row.optimizer.cut_by) : 1;
  const Use home{.buffer = unit.gradient};
  return {.name = in ? "bring gradients" : "take gradients away",
          .what = Copy{.bytes = size_of(row.gradients.dtype) * (unit.elements / parts),
                       .slice = own_slice && row.gradients.cut_by.empty() ? slice(unit) : GroupId{}},
          .stream = frame_.copy_way(row.gradients.home, !in).stream,
          .reads = {in ? home : place},
          .writes = {in ? place : home}};
}

// The place for the rank's part of a unit whose gradients are cut and away; a part that accumulates is copied in first.
Use StateProgram::bring_own_gradient(SegmentBuilder& out, int index, const RunPart& part) {
  const StateUnit& it = unit(index);
  const Bytes bytes = size_of(row_of(it).gradients.dtype) * (it.elements / frame_.lowering.ranks(row_of(it).optimizer.cut_by));
  const Use place{.buffer = own_gradients_, .slot = {index % kOwnPlaces}, .length = bytes};
  if (!part.accumulates) return place;
  Instruction run = copy_gradient(it, place, true, true);
  open_own_gradient(run, place);
  out.emit(std::move(run));
  return place;
}

void StateProgram::open_own_gradient(Instruction& run, const Use& place) const {
  run.acquires.push_back({place.buffer, place.slot});
  run.waits.push_back({own_free_, place.slot});
}

void StateProgram::send_gradient(SegmentBuilder& out, int index, const Use& place, const RunPart& part, bool own_slice) const {
  const StateUnit& it = unit(index);
  const bool cut = !row_of(it).gradients.cut_by.empty();
  Instruction run = copy_gradient(it, place, false, own_slice);
  if (part.last || it.standalone) run.records.push_back({reduced_, {index}});
  out.emit(std::move(run));
  if (!cut) return release_full_gradient(out, it);
  const Block block{place.buffer, place.slot};
  out.record_after_last_use(block, {own_free_, block.slot});
  out.release(block);
}

void StateProgram::bring_gradients(SegmentBuilder& out, int layer, std::vector<char>& opened) const {
  for (const int index : state_.units_of_layer[static_cast<std::size_t>(layer)]) {
    char& open = opened[static_cast<std::size_t>(index)];
    if (open || !leaves(index) || !row_of(unit(index)).gradients.cut_by.empty()) continue;
    const StateUnit& it = unit(index);
    const Use place{.buffer = it.full_gradient,
                    .slot = {it.full_gradient_slot},
                    .length = size_of(row_of(it).gradients.dtype) * it.elements};
    Instruction run = copy_gradient(it, place, true, false);
    open_gradient(run, place, index, opened);
    out.emit(std::move(run));
  }
}

bool StateProgram::sums_beside_backwards() const {
  const auto beside = [](const GradientSum& sum) { return sum.when != GradientSum::When::AtEnd; };
  return std::ranges::any_of(frame_.lowering.tables.state, [&](const StateRow& row) {
    return row.gradients.home != Space::Device || std::ranges::any_of(row.gradients.sums, beside);
  });
}

bool StateProgram::is_ordered(int index) const {
  return std::ranges::any_of(order_, [&](const SumPart& part) { return part.unit == index; });
}

// Emits the next parts of order_, as long as the backward has completed their gradients. After the first layer all are complete, so all
// parts are emitted by then.
void StateProgram::sum_in_order(SegmentBuilder& out, int layer, const RunPart& part, int begins) {
  for (; next_ < order_.size() && unit(order_[next_].unit).last_layer >= layer; ++next_)
    sum_unit(out, order_[next_].unit, part, false, begins, &order_[next_]);
}

void StateProgram::sum_layer(SegmentBuilder& out, int layer, const RunPart& part, int begins) {
  update_summed(out);
  if (part.last) sum_in_order(out, layer, part, begins);
  for (int index = 0; index < units(); ++index)
    if (unit(index).last_layer == layer && (is_summed(index) || leaves(index)) && !(part.last && is_ordered(index)))
      sum_unit(out, index, part, false, begins);
  for (int index = 0; part.last && index < units(); ++index)
    if (unit(index).last_layer == layer && updates_with_backward(index)) summed_.push_back(index);
  if (layer == 0) coded_->end(out, part);
}

void StateProgram::sum_rest(SegmentBuilder& out, int begins) {
  for (int index = 0; index < units(); ++index)
    if (is_summed(index) && !leaves(index) && !coded_->codes(index)) sum_unit(out, index, {.last = true}, true, begins);
  coded_->finish(out);
}

}  // namespace foreshard
