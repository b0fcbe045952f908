// The end of a run for one chunk: remaining reductions, optimizer step, all-gather of updated parameters.

#include "strategy/lower/chunk_program.h"

#include <algorithm>

namespace foreshard {

static Use whole(BufferId buffer) { return {.buffer = buffer}; }

// Reductions that did not overlap with the backward, and the sum of the two copies of a tied embedding.
void ChunkProgram::reduce_rest(SegmentBuilder& out, int mark, bool tied) {
  const bool overlapped = lowering_.zero >= 2 || lowering_.strategy.overlap->gradients;
  for (int index = 0; index < static_cast<int>(state_.units.size()); ++index) {
    const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
    if (!overlapped && needs_reduction(index)) {
      const int first = out.size();
      reduce_unit(out, index, {.last = true});
      out.at(first).after.push_back(mark);
    }
    if (!tied || !unit.tied) continue;
    const std::int64_t elements = lowering_.zero >= 2 ? unit.elements / lowering_.shards : unit.elements;
    Instruction both = sum("sum of tied embeddings", CollectiveKind::AllReduce, lowering_.tied_group,
                           size_of(lowering_.types.grad) * elements, whole(unit.gradient), whole(unit.gradient));
    both.after.push_back(mark);
    both.records.push_back({reduced_, {index}});
    out.emit(std::move(both));
  }
}

// Adam (Kingma & Ba 2015; decoupled decay as AdamW) or SGD on the part of the unit that this rank owns.
Instruction ChunkProgram::update(int index) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const StateTypes& types = lowering_.types;
  const bool sharded = lowering_.zero >= 1;
  const std::int64_t elements = sharded ? unit.elements / lowering_.shards : unit.elements;
  const bool adam = lowering_.strategy.optimizer == OptimizerKind::Adam;
  Bytes each = size_of(types.grad) + size_of(types.param);
  each += types.master ? size_of(types.state) * 2 : size_of(types.param);
  const double flops = adam ? ops::Adam::flops_per_element : ops::Sgd::flops_per_element;
  Compute what{.op = ops::Adam{},
               .phase = Phase::Update,
               .shapes = {{{elements}, types.state}},
               .flops = {static_cast<double>(elements) * flops}};
  if (!adam) what.op = ops::Sgd{.momentum = std::max(0.0, lowering_.strategy.momentum)};
  if (lowering_.zero < 3) what.slice = slice();
  Instruction run{.name = adam ? "adam" : "sgd", .stream = RoleStreams::compute};
  run.reads = {whole(unit.gradient)};
  for (const BufferId state : {unit.master, unit.momentum, unit.variance}) {
    if (!state.valid()) continue;
    run.reads.push_back(whole(state));
    run.writes.push_back(whole(state));
    if (state != unit.master) each += size_of(types.state) * 2;
  }
  if (!unit.master.valid()) run.reads.push_back(whole(unit.value));
  run.writes.push_back(whole(unit.value));
  what.traffic = each * elements;
  run.what = std::move(what);
  if (needs_reduction(index) || unit.tied) run.waits.push_back({reduced_, {index}});
  return run;
}

// ZeRO 1-2 work on their slice of buffers that hold all slices.
GroupId ChunkProgram::slice() const { return lowering_.zero >= 1 ? lowering_.shard_group : GroupId{}; }

// Adds the squares of the unit's gradients to the norm; what every tp rank holds counts once, and padding does not count: behind
// a full gradient in a ring (ZeRO 2-3) lies what was there before.
Instruction ChunkProgram::norm(int index, bool first) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const std::int64_t elements = unit.elements / (lowering_.zero >= 1 ? lowering_.shards : 1);
  const bool padded = lowering_.zero >= 2 && unit.used < unit.elements;
  Instruction run{.name = "gradient norm",
                  .what = Compute{.op = ops::GradNorm{.divide = unit.replicated_over_tp ? lowering_.strategy.tp : 1,
                                                      .used = padded ? unit.used : 0},
                                  .phase = Phase::Update,
                                  .shapes = {{{elements}, lowering_.types.grad}},
                                  .flops = {ops::GradNorm::flops_per_element * static_cast<double>(elements)},
                                  .traffic = size_of(lowering_.types.grad) * elements,
                                  .accumulate = !first,
                                  .slice = lowering_.zero == 1 || padded ? slice() : GroupId{}},
                  .stream = RoleStreams::compute,
                  .reads = {whole(unit.gradient)},
                  .writes = {whole(lowering_.norm)}};
  if (needs_reduction(index) || unit.tied) run.waits.push_back({reduced_, {index}});
  return run;
}

// Scales the gradients down to the largest allowed norm (Pascanu et al. 2013).
Instruction ChunkProgram::clip(int index) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const bool unmeasured =
      unit.tied && stage_ != 0;  // the norm, which waits for all gradients that it counts, does not wait for this one
  const std::int64_t elements = unit.elements / (lowering_.zero >= 1 ? lowering_.shards : 1);
  return {.name = "clip",
          .what = Compute{.op = ops::ClipScale{.max_norm = *lowering_.strategy.clip_norm},
                          .phase = Phase::Update,
                          .shapes = {{{elements}, lowering_.types.grad}},
                          .flops = {ops::ClipScale::flops_per_element * static_cast<double>(elements)},
                          .traffic = size_of(lowering_.types.grad) * elements * 2,
                          .slice = lowering_.zero == 1 ? slice() : GroupId{}},
          .stream = RoleStreams::compute,
          .waits = unmeasured ? std::vector<EventUse>{{reduced_, {index}}} : std::vector<EventUse>{},
          .reads = {whole(lowering_.norm)},
          .writes = {whole(unit.gradient)}};
}

Segment ChunkProgram::measure(bool tied, bool first) {
  SegmentBuilder out("norm." + std::to_string(chunk_), {});
  const int mark = out.emit({.name = "backward done", .what = Mark{}, .stream = RoleStreams::compute});
  reduce_rest(out, mark, tied);
  for (int index = 0; index < static_cast<int>(state_.units.size()); ++index) {
    if (state_.units[static_cast<std::size_t>(index)].borrowed) continue;
    if (state_.units[static_cast<std::size_t>(index)].tied && stage_ != 0) continue;  // the first stage's copy counts
    out.emit(norm(index, first));
    first = false;
  }
  return out.take();
}

Instruction ChunkProgram::gather_unit(int index) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  return {.name = "all-gather parameters",
          .what = Collective{.kind = CollectiveKind::AllGather,
                             .algorithm = lowering_.strategy.algorithm,
                             .group = lowering_.shard_group,
                             .bytes = size_of(lowering_.types.param) * unit.elements,
                             .dtype = lowering_.types.param},
          .stream = RoleStreams::replicas,
          .records = {{ready_, {index}}},
          .reads = {whole(unit.value)},
          .writes = {whole(unit.value)}};
}

// The optimizers of frameworks step when all gradients are summed, with or without a norm (Megatron's finish_grad_sync, DeepSpeed's
// reductions at the end of the backward, DDP); our own executor updates each unit as soon as its own are.
void ChunkProgram::wait_for_sums(SegmentBuilder& out) const {
  Instruction all{.name = "gradients summed", .what = Mark{}, .stream = RoleStreams::compute};
  for (int index = 0; index < static_cast<int>(state_.units.size()); ++index) {
    const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
    if (!unit.borrowed && (needs_reduction(index) || unit.tied)) all.waits.push_back({reduced_, {index}});
  }
  if (!all.waits.empty()) out.emit(std::move(all));
}

Segment ChunkProgram::finish(bool tied) {
  SegmentBuilder out("update." + std::to_string(chunk_), {});
  const int mark = out.emit({.name = "backward done", .what = Mark{}, .stream = RoleStreams::compute});
  if (!lowering_.measures()) {
    reduce_rest(out, mark, tied);
    if (lowering_.strategy.framework != Strategy{}.framework) wait_for_sums(out);
  }
  for (int index = 0; index < static_cast<int>(state_.units.size()); ++index) {
    if (state_.units[static_cast<std::size_t>(index)].borrowed) continue;
    if (lowering_.clips()) out.emit(clip(index));
    Instruction run = update(index);
    const bool gathers_later = lowering_.strategy.overlap->parameters;
    if (lowering_.zero >= 3) run.records.push_back({ready_, {index}});
    if (lowering_.zero >= 1 && lowering_.zero < 3 && gathers_later) run.records.push_back({updated_, {index}});
    out.emit(std::move(run));
    if (lowering_.zero >= 1 && lowering_.zero < 3 && !gathers_later) out.emit(gather_unit(index));
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
