// The end of a run for one chunk: remaining reductions, optimizer step, all-gather of updated parameters.

#include "strategy/lower/chunk_program.h"

#include <algorithm>

namespace foreshard {

static Use whole(BufferId buffer) { return {.buffer = buffer}; }

// Adam (Kingma & Ba 2015; decoupled decay as AdamW) or SGD on the part of the unit that this rank owns.
Instruction ChunkProgram::update(int index) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const StateRow& row = row_of(unit);
  const Update& update = lowering_.tables.update;
  const std::int64_t elements = own_elements(unit);
  const bool adam = update.optimizer == OptimizerKind::Adam;
  Bytes each = size_of(row.gradients.dtype) + size_of(row.parameters.dtype);
  each += row.optimizer.master ? size_of(row.optimizer.dtype) * 2 : size_of(row.parameters.dtype);
  const double flops = adam ? ops::Adam::flops_per_element : ops::Sgd::flops_per_element;
  Compute what{.op = ops::Adam{},
               .phase = Phase::Update,
               .shapes = {{{elements}, row.optimizer.dtype}},
               .flops = {static_cast<double>(elements) * flops}};
  if (!adam) what.op = ops::Sgd{.momentum = update.momentum};
  if (row.parameters.cut_by.empty()) what.slice = slice(unit);
  Instruction run{.name = adam ? "adam" : "sgd", .stream = kComputeStream};
  run.reads = {whole(unit.gradient)};
  for (const BufferId state : {unit.master, unit.momentum, unit.variance}) {
    if (!state.valid()) continue;
    run.reads.push_back(whole(state));
    run.writes.push_back(whole(state));
    if (state != unit.master) each += size_of(row.optimizer.dtype) * 2;
  }
  if (!unit.master.valid()) run.reads.push_back(whole(unit.value));
  run.writes.push_back(whole(unit.value));
  what.traffic = each * elements;
  run.what = std::move(what);
  if (is_summed(index)) run.waits.push_back({reduced_, {index}});
  return run;
}

// What this rank updates of the unit.
std::int64_t ChunkProgram::own_elements(const StateUnit& unit) const {
  return unit.elements / lowering_.ranks(row_of(unit).optimizer.cut_by);
}

// Where the optimizer is cut, a rank works on its slice of buffers that hold all slices.
GroupId ChunkProgram::slice(const StateUnit& unit) const {
  return lowering_.group(row_of(unit).optimizer.cut_by, lowering_.communication(Purpose::ParameterGather).stream);
}

// Adds the squares of the unit's gradients to the norm; what every tp rank holds counts once, and padding does not count: behind
// a whole gradient in a ring lies what was there before.
Instruction ChunkProgram::norm(int index, bool first) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const StateRow& row = row_of(unit);
  const std::int64_t elements = own_elements(unit);
  const bool cut = !row.gradients.cut_by.empty(), padded = cut && unit.used < unit.elements;
  const int copies = row.tensors == Tensors::Whole ? lowering_.ranks({DenseKind::Tensor}) : 1;
  Instruction run{.name = "gradient norm",
                  .what = Compute{.op = ops::GradNorm{.divide = copies, .used = padded ? unit.used : 0},
                                  .phase = Phase::Update,
                                  .shapes = {{{elements}, row.gradients.dtype}},
                                  .flops = {ops::GradNorm::flops_per_element * static_cast<double>(elements)},
                                  .traffic = size_of(row.gradients.dtype) * elements,
                                  .accumulate = !first,
                                  .slice = !cut || padded ? slice(unit) : GroupId{}},
                  .stream = kComputeStream,
                  .reads = {whole(unit.gradient)},
                  .writes = {whole(lowering_.norm)}};
  if (is_summed(index)) run.waits.push_back({reduced_, {index}});
  return run;
}

// Scales the gradients down to the largest allowed norm (Pascanu et al. 2013).
Instruction ChunkProgram::clip(int index) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const StateRow& row = row_of(unit);
  const bool unmeasured =
      is_second_copy(unit);  // the norm, which waits for all gradients that it counts, does not wait for this one
  const std::int64_t elements = own_elements(unit);
  return {.name = "clip",
          .what = Compute{.op = ops::ClipScale{.max_norm = lowering_.tables.update.clip_norm},
                          .phase = Phase::Update,
                          .shapes = {{{elements}, row.gradients.dtype}},
                          .flops = {ops::ClipScale::flops_per_element * static_cast<double>(elements)},
                          .traffic = size_of(row.gradients.dtype) * elements * 2,
                          .slice = row.gradients.cut_by.empty() ? slice(unit) : GroupId{}},
          .stream = kComputeStream,
          .waits = unmeasured ? std::vector<EventUse>{{reduced_, {index}}} : std::vector<EventUse>{},
          .reads = {whole(lowering_.norm)},
          .writes = {whole(unit.gradient)}};
}

// Of a tied embedding: the first stage's copy counts in the norm.
bool ChunkProgram::is_second_copy(const StateUnit& unit) const {
  const auto& sums = row_of(unit).gradients.sums;
  return stage_ != 0 && std::ranges::any_of(sums, [&](const GradientSum& sum) { return sum.tied_stages; });
}

Segment ChunkProgram::measure(bool first) {
  SegmentBuilder out("norm." + std::to_string(chunk_), {});
  const int mark = out.emit({.name = "backward done", .what = Mark{}, .stream = kComputeStream});
  for (int index = 0; index < static_cast<int>(state_.units.size()); ++index)
    if (is_summed(index)) sum_unit(out, index, {.last = true}, true, mark);
  for (int index = 0; index < static_cast<int>(state_.units.size()); ++index) {
    if (state_.units[static_cast<std::size_t>(index)].borrowed) continue;
    if (is_second_copy(state_.units[static_cast<std::size_t>(index)])) continue;
    out.emit(norm(index, first));
    first = false;
  }
  return out.take();
}

// Each rank has updated its part of parameters that all read whole.
bool ChunkProgram::gathers_after_update(const StateUnit& unit) const {
  const StateRow& row = row_of(unit);
  return !row.optimizer.cut_by.empty() && row.parameters.cut_by.empty();
}

Instruction ChunkProgram::gather_unit(int index) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const DType dtype = row_of(unit).parameters.dtype;
  const CommunicationRow& way = lowering_.communication(Purpose::ParameterGather);
  return {.name = "all-gather parameters",
          .what = Collective{.kind = CollectiveKind::AllGather,
                             .algorithm = way.algorithm,
                             .group = slice(unit),
                             .bytes = size_of(dtype) * unit.elements,
                             .dtype = dtype},
          .stream = way.stream,
          .records = {{ready_, {index}}},
          .reads = {whole(unit.value)},
          .writes = {whole(unit.value)}};
}

// The optimizers of frameworks step when all gradients are summed, with or without a norm (Megatron's finish_grad_sync, DeepSpeed's
// reductions at the end of the backward, DDP); our own executor updates each unit as soon as its own are.
void ChunkProgram::wait_for_sums(SegmentBuilder& out) const {
  Instruction all{.name = "gradients summed", .what = Mark{}, .stream = kComputeStream};
  for (int index = 0; index < static_cast<int>(state_.units.size()); ++index) {
    if (is_summed(index)) all.waits.push_back({reduced_, {index}});
  }
  if (!all.waits.empty()) out.emit(std::move(all));
}

Segment ChunkProgram::finish() {
  SegmentBuilder out("update." + std::to_string(chunk_), {});
  const int mark = out.emit({.name = "backward done", .what = Mark{}, .stream = kComputeStream});
  const Update& how = lowering_.tables.update;
  if (!how.measures()) {
    for (int index = 0; index < static_cast<int>(state_.units.size()); ++index)
      if (is_summed(index)) sum_unit(out, index, {.last = true}, true, mark);
    if (how.waits_for_all_sums) wait_for_sums(out);
  }
  for (int index = 0; index < static_cast<int>(state_.units.size()); ++index) {
    const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
    if (unit.borrowed) continue;
    if (how.clips()) out.emit(clip(index));
    Instruction run = update(index);
    const StateRow::Parameters& parameters = row_of(unit).parameters;
    if (!parameters.cut_by.empty()) run.records.push_back({ready_, {index}});
    if (parameters.gathered_next_run) run.records.push_back({updated_, {index}});
    out.emit(std::move(run));
    if (gathers_after_update(unit) && !parameters.gathered_next_run) out.emit(gather_unit(index));
  }
  return out.take();
}

// First layers first: that is the order in which the forward needs them.
Segment ChunkProgram::gather() {
  SegmentBuilder out("gather." + std::to_string(chunk_), {});
  for (int index = static_cast<int>(state_.units.size()) - 1; index >= 0; --index) {
    if (state_.units[static_cast<std::size_t>(index)].borrowed) continue;
    Instruction run = gather_unit(index);
    run.waits.push_back({updated_, {index}});
    out.emit(std::move(run));
  }
  return out.take();
}

}  // namespace foreshard
