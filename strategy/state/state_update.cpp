// The end of a run for one chunk: remaining reductions, optimizer step, all-gather of updated parameters.

#include "strategy/state/state_program.h"

#include <algorithm>
#include <utility>

namespace foreshard {

static Use all_of(BufferId buffer) { return {.buffer = buffer}; }

// Adam (Kingma & Ba 2015; decoupled decay as AdamW) or SGD on the part of the unit that this rank owns.
Instruction StateProgram::update(int index) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const StateRow& row = row_of(unit);
  const Update& update = frame_.lowering.tables.update;
  const std::int64_t elements = own_elements(unit);
  const bool adam = update.optimizer == OptimizerKind::Adam;
  Bytes each = size_of(row.gradients.dtype) + size_of(row.parameters.dtype);
  each += row.optimizer.master ? size_of(row.optimizer.dtype) * 2 : size_of(row.parameters.dtype);
  const double flops = adam ? ops::Adam::flops_per_element : ops::Sgd::flops_per_element;
  Compute what{
      .phase = Phase::Update, .shapes = {{{elements}, row.optimizer.dtype}}, .flops = {static_cast<double>(elements) * flops}};
  const ops::DelayedRate rate = frame_.delayed_rate();
  if (adam)
    what.op = ops::Adam{.frozen_after = row.optimizer.frozen_after, .rate = rate};
  else
    what.op = ops::Sgd{.momentum = row.optimizer.momentum ? update.momentum : 0, .rate = rate};
  if (row.parameters.cut_by.empty()) what.slice = slice(unit);
  Instruction run{.name = adam ? "adam" : "sgd", .stream = kComputeStream};
  run.reads = {gradient_of(unit)};
  for (const BufferId state : {unit.master, unit.momentum, unit.variance}) {
    if (!state.valid()) continue;
    run.reads.push_back(all_of(state));
    run.writes.push_back(all_of(state));
    if (state != unit.master) each += size_of(row.optimizer.dtype) * 2;
  }
  if (!unit.master.valid()) run.reads.push_back(all_of(unit.value));
  run.writes.push_back({.buffer = unit.value, .slot = weights_made()});
  what.traffic = each * elements;
  run.what = std::move(what);
  if (is_summed(index) || leaves(index)) run.waits.push_back({reduced_, {index}});
  return run;
}

Use StateProgram::gradient_of(const StateUnit& unit) const {
  const StateRow::Gradients& row = row_of(unit).gradients;
  if (row.kept) return all_of(unit.gradient);
  return {.buffer = unit.gradient, .slot = {unit.full_gradient_slot}, .length = size_of(row.dtype) * unit.elements};
}

// Units with a sum at the end of the run (over tied stages, for example) are updated there, not with the backward.
bool StateProgram::updates_with_backward(int index) const {
  const StateUnit& it = unit(index);
  const StateRow& row = row_of(it);
  const auto later = [&](const GradientSum& sum) { return sum.when == GradientSum::When::AtEnd && is_summed(sum); };
  return it.updated() && row.optimizer.with_backward && std::ranges::none_of(row.gradients.sums, later);
}

void StateProgram::update_summed(SegmentBuilder& out) {
  for (const int index : std::exchange(summed_, {})) {
    add_update(out, index, -1);
    const StateUnit& it = unit(index);
    if (row_of(it).gradients.kept) continue;
    const Block block{it.full_gradient, {it.full_gradient_slot}};
    out.record_after_last_use(block, it.standalone ? EventUse{reduced_, {index}} : EventUse{ring_free_, block.slot});
    out.release(block);
  }
}

// The elements of the unit that this rank updates.
std::int64_t StateProgram::own_elements(const StateUnit& unit) const {
  return unit.elements / frame_.lowering.ranks(row_of(unit).optimizer.cut_by);
}

// Where the optimizer is cut, a rank works on its slice of buffers that hold all slices.
GroupId StateProgram::slice(const StateUnit& unit) const {
  return frame_.lowering.group(row_of(unit).optimizer.cut_by, frame_.lowering.communication(Purpose::ParameterGather).stream);
}

// Adds the squares of the unit's gradients to the norm. Gradients that are equal on several ranks count once. Padding is left out, since in
// a ring slot it holds old data.
Instruction StateProgram::norm(int index, bool first) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const StateRow& row = row_of(unit);
  const std::int64_t elements = own_elements(unit);
  const bool cut = !row.gradients.cut_by.empty(), padded = cut && unit.used < unit.elements;
  const int copies = frame_.lowering.ranks(row.gradients.measured_alike);
  Instruction run{.name = "gradient norm",
                  .what = Compute{.op = ops::GradNorm{.divide = copies, .used = padded ? unit.used : 0},
                                  .phase = Phase::Update,
                                  .shapes = {{{elements}, row.gradients.dtype}},
                                  .flops = {ops::GradNorm::flops_per_element * static_cast<double>(elements)},
                                  .traffic = size_of(row.gradients.dtype) * elements,
                                  .accumulate = !first,
                                  .slice = !cut || padded ? slice(unit) : GroupId{}},
                  .stream = kComputeStream,
                  .reads = {all_of(unit.gradient)},
                  .writes = {all_of(frame_.lowering.norm)}};
  if (is_summed(index) || leaves(index)) run.waits.push_back({reduced_, {index}});
  return run;
}

// Copies gradients that are away to the device once more, to measure their norm.
void StateProgram::measure_away(SegmentBuilder& out, int index, int turn, Instruction norm) {
  const StateUnit& of = unit(index);
  const Block block{norm_places_, {turn % kOwnPlaces}};
  const Use place{.buffer = block.buffer, .slot = block.slot, .length = size_of(row_of(of).gradients.dtype) * own_elements(of)};
  Instruction in = copy_gradient(of, place, true, false);
  in.waits = std::exchange(norm.waits, {});
  in.acquires = {block};
  if (turn < kOwnPlaces) in.waits.push_back({norm_free_, block.slot});
  norm.reads = {place};
  out.emit(std::move(in));
  out.emit(std::move(norm));
  out.record_after_last_use(block, {norm_free_, block.slot});
  out.release(block);
}

// Scales the gradients down to the largest allowed norm (Pascanu et al. 2013).
Instruction StateProgram::clip(int index) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const StateRow& row = row_of(unit);
  // The norm, which waits for all gradients that it counts, does not wait for this one.
  const bool unmeasured = is_second_copy(unit);
  const std::int64_t elements = own_elements(unit);
  return {.name = "clip",
          .what = Compute{.op = ops::ClipScale{.max_norm = frame_.lowering.tables.update.clip_norm},
                          .phase = Phase::Update,
                          .shapes = {{{elements}, row.gradients.dtype}},
                          .flops = {ops::ClipScale::flops_per_element * static_cast<double>(elements)},
                          .traffic = size_of(row.gradients.dtype) * elements * 2,
                          .slice = row.gradients.cut_by.empty() ? slice(unit) : GroupId{}},
          .stream = kComputeStream,
          .waits = unmeasured ? std::vector<EventUse>{{reduced_, {index}}} : std::vector<EventUse>{},
          .reads = {all_of(frame_.lowering.norm)},
          .writes = {all_of(unit.gradient)}};
}

// Whether the unit is the last stage's copy of a tied embedding; only the first stage's copy counts in the norm.
bool StateProgram::is_second_copy(const StateUnit& unit) const {
  const auto& sums = row_of(unit).gradients.sums;
  return !frame_.first_stage() && std::ranges::any_of(sums, [&](const GradientSum& sum) { return sum.tied_stages; });
}

Segment StateProgram::measure(bool first) {
  SegmentBuilder out("norm." + std::to_string(frame_.chunk), {});
  const int mark = out.emit({.name = "backward done", .what = Mark{}, .stream = kComputeStream});
  sum_rest(out, mark);
  int away = 0;
  for (int index = 0; index < units(); ++index) {
    if (!state_.units[static_cast<std::size_t>(index)].updated()) continue;
    if (is_second_copy(state_.units[static_cast<std::size_t>(index)])) continue;
    if (leaves(index))
      measure_away(out, index, away++, norm(index, first));
    else
      out.emit(norm(index, first));
    first = false;
  }
  return out.take();
}

// Whether each rank updates only its part of parameters that all ranks read whole.
bool StateProgram::gathers_after_update(const StateUnit& unit) const {
  const StateRow& row = row_of(unit);
  return !row.optimizer.cut_by.empty() && row.parameters.cut_by.empty();
}

Instruction StateProgram::gather_unit(int index) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  Instruction run = all_gather(frame_, unit, all_of(unit.value), all_of(unit.value));
  run.records.push_back({ready_, {index}});
  return run;
}

// The optimizers of frameworks step when all gradients are summed, with or without a norm (Megatron's finish_grad_sync, DeepSpeed's
// reductions at the end of the backward, DDP); our own executor updates each unit as soon as the unit's gradients are summed.
void StateProgram::wait_for_sums(SegmentBuilder& out) const {
  Instruction all{.name = "gradients summed", .what = Mark{}, .stream = kComputeStream};
  for (int index = 0; index < units(); ++index) {
    if (is_summed(index)) all.waits.push_back({reduced_, {index}});
  }
  if (!all.waits.empty()) out.emit(std::move(all));
}

// Slot 0 has the newest version, slot 1 the one before it, which nothing reads any more. If they `arrive`, the newest version
// is there after `ready`.
static void keep(SegmentBuilder& out, const Role& role, BufferId value, const EventUse& ready, const EventUse& kept,
                 bool arrive) {
  Instruction copy{.name = "keep weights",
                   .what = Copy{.bytes = role.buffers[value.index()].bytes},
                   .stream = kComputeStream,
                   .reads = {{.buffer = value, .slot = {ParamId{0}}}},
                   .writes = {{.buffer = value, .slot = {1}}}};
  if (arrive) copy.waits = {ready}, copy.records = {kept};
  out.emit(std::move(copy));
}

// The version of the weights that an update writes: where there are several, a parameter of the update's segment names it.
Slot StateProgram::weights_made() const { return frame_.lowering.weight_slots > 1 ? Slot{ParamId{0}} : Slot{}; }

// The units in the order in which their sums end, so that no update beside the next forward waits for one whose sum ends later.
std::vector<int> StateProgram::order_of_updates() const {
  std::vector<int> all;
  for (const SumPart& part : order_)
    if (part.last) all.push_back(part.unit);
  for (int index = 0; index < units(); ++index)
    if (!is_ordered(index)) all.push_back(index);
  return all;
}

Segment StateProgram::finish(bool keeps) {
  const std::vector<Param> made = {{"weights", ParamKind::Slot}};
  SegmentBuilder out("update." + std::to_string(frame_.chunk), frame_.lowering.weight_slots > 1 ? made : std::vector<Param>{});
  const int mark = out.emit({.name = "backward done", .what = Mark{}, .stream = kComputeStream});
  const Update& how = frame_.lowering.tables.update;
  if (!how.measures()) {
    sum_rest(out, mark);
    if (how.waits_for_all_sums) wait_for_sums(out);
  }
  for (int i = 0; keeps && i < units(); ++i)
    if (unit(i).updated())
      keep(out, frame_.role, unit(i).value, ready(i, weights_made()), ready(i, {1}), row_of(unit(i)).parameters_arrive());
  if (moves_ && how.clips()) moves_->bring_norm(out, mark);
  for (const int index : order_of_updates()) {
    const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
    if (!unit.updated() || updates_with_backward(index)) continue;
    if (how.clips() && !leaves(index)) out.emit(clip(index));
    add_update(out, index, mark);
  }
  return out.take();
}

void StateProgram::add_update(SegmentBuilder& out, int index, int mark) {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const StateRow::Parameters& parameters = row_of(unit).parameters;
  const bool gathers = gathers_after_update(unit);
  Instruction run = update(index);
  if (row_of(unit).optimizer.beside_forward) {
    run.stream = frame_.lowering.communication(Purpose::UpdateBesideForward).stream;
    if (!is_summed(index)) run.after.push_back(mark);  // no sum to wait for: the gradients are those of the compute stream
  }
  if (!gathers && row_of(unit).parameters_arrive()) run.records.push_back(ready(index, weights_made()));
  if (parameters.gathered_next_run) run.records.push_back({updated_, {index}});
  if (std::optional<UpdateMoves>& moves = unit.states_away ? moves_ : kept_moves_)
    moves->add(out, index,
               {.run = std::move(run),
                .slice = slice(unit),
                .elements = own_elements(unit),
                .clip = leaves(index) && frame_.lowering.tables.update.clips() ? std::optional(clip(index)) : std::nullopt,
                .gradients_taken = taken_.valid() ? std::optional<EventUse>({taken_, {index}}) : std::nullopt},
               mark);
  else
    out.emit(std::move(run));
  if (gathers && !parameters.gathered_next_run) out.emit(gather_unit(index));
}

// First layers first: that is the order in which the forward needs them.
Segment StateProgram::gather_all() {
  SegmentBuilder out("gather." + std::to_string(frame_.chunk), {});
  for (int index = units() - 1; index >= 0; --index) {
    const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
    if (!unit.updated() || !row_of(unit).parameters.gathered_next_run) continue;
    Instruction run = gather_unit(index);
    run.waits.push_back({updated_, {index}});
    out.emit(std::move(run));
  }
  return out.take();
}

}  // namespace foreshard
