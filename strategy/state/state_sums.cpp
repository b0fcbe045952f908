// Gradient sums over replicas, bucket by bucket.
#include <algorithm>

#include "strategy/state/state_program.h"

namespace foreshard {

static Use part_of(BufferId buffer, int slot = 0) { return {.buffer = buffer, .slot = {slot}}; }

bool StateProgram::is_summed(const GradientSum& sum) const {
  return sum.tied_stages ? frame_.lowering.group_of_roles(LayoutGroup::Roles::Tied).valid()
                         : frame_.lowering.ranks(sum.over) > 1;
}

bool StateProgram::is_summed(int unit) const {
  const StateUnit& it = state_.units[static_cast<std::size_t>(unit)];
  return !it.borrowed && std::ranges::any_of(row_of(it).gradients.sums, [&](const GradientSum& sum) { return is_summed(sum); });
}

// Adds those of the unit's sums that are due then, in their order; `begins` comes before the first of them.
//   over what the optimizer is cut by   a reduce-scatter: in place, or of a whole gradient into the own part, which accumulates
//   behind that                         all-reduces of the own part
void StateProgram::sum_unit(SegmentBuilder& out, int index, const RunPart& part, bool at_end, int begins) {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const StateRow& row = row_of(unit);
  const Bytes each = size_of(row.gradients.dtype);
  const bool cut = !row.gradients.cut_by.empty();
  const CommunicationRow& way = frame_.lowering.communication(Purpose::GradientSum);
  const Use full = cut ? part_of(unit.full_gradient, unit.full_gradient_slot) : part_of(unit.gradient),
            own = part_of(unit.gradient);
  const GroupId shards = frame_.lowering.group(row.optimizer.cut_by, way.stream);
  bool scattered = false;
  int last = -1;
  for (const GradientSum& sum : row.gradients.sums) {
    const bool scatters = !row.optimizer.cut_by.empty() && sum.over == row.optimizer.cut_by;
    const bool of_part = scattered || (sum.tied_stages && cut);
    scattered |= scatters;
    const bool due = at_end                                          ? sum.when == GradientSum::When::AtEnd
                     : sum.when == GradientSum::When::LastMicrobatch ? part.last
                                                                     : sum.when == GradientSum::When::EachMicrobatch;
    if (!due || !is_summed(sum)) continue;
    const bool sliced = of_part && !cut && !sum.tied_stages;  // the buffer is of full size: the own slice of it
    const Use& from = of_part || sum.tied_stages ? own : full;
    const std::int64_t elements =
        sliced || (of_part && cut) ? unit.elements / frame_.lowering.ranks(row.optimizer.cut_by) : unit.elements;
    Instruction run{.name = sum.name,
                    .what = Collective{.kind = scatters ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce,
                                       .algorithm = way.algorithm,
                                       .group = sum.tied_stages ? frame_.lowering.group_of_roles(LayoutGroup::Roles::Tied)
                                                                : frame_.lowering.group(sum.over, way.stream),
                                       .bytes = each * elements,
                                       .dtype = row.gradients.dtype},
                    .stream = way.stream,
                    .reads = {from},
                    .writes = {scatters ? own : from}};
    if (sliced) std::get<Collective>(run.what).slice = shards;
    if (scatters && cut && part.accumulates) std::get<Collective>(run.what).accumulate = true;
    if (scatters && cut && !part.accumulates) run.waits.push_back({ready_, {index}});  // the last update has read the part
    if (sum.tied_stages) run.records.push_back({reduced_, {index}});
    const int emitted = out.emit(std::move(run));
    if (begins >= 0 && (last < 0 || sum.tied_stages)) out.at(emitted).after.push_back(begins);
    if (!sum.tied_stages) last = emitted;
    if (scatters && cut) {
      const Block block{full.buffer, full.slot};
      if (!unit.standalone) out.record_after_last_use(block, {ring_free_, block.slot});
      out.release(block);
    }
  }
  if (last >= 0 && (part.last || unit.standalone)) out.at(last).records.push_back({reduced_, {index}});
}

bool StateProgram::sums_beside_backwards() const {
  const auto beside = [](const GradientSum& sum) { return sum.when != GradientSum::When::AtEnd; };
  return std::ranges::any_of(frame_.lowering.tables.state,
                             [&](const StateRow& row) { return std::ranges::any_of(row.gradients.sums, beside); });
}

void StateProgram::sum_layer(SegmentBuilder& out, int layer, const RunPart& part, int begins) {
  for (int index = 0; index < units(); ++index)
    if (unit(index).last_layer == layer && is_summed(index)) sum_unit(out, index, part, false, begins);
}

void StateProgram::sum_rest(SegmentBuilder& out, int begins) {
  for (int index = 0; index < units(); ++index)
    if (is_summed(index)) sum_unit(out, index, {.last = true}, true, begins);
}

}  // namespace foreshard
