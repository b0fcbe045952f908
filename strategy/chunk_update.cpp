// The end of a run for one chunk: remaining reductions, optimizer step, all-gather of updated parameters.

#include "strategy/chunk_program.h"

namespace foreshard {

static Use whole(BufferId buffer) { return {.buffer = buffer}; }

// Reductions that did not overlap with the backward, and the sum of the two copies of a tied embedding.
void ChunkProgram::reduce_rest(SegmentBuilder& out, int mark, bool tied) {
  const bool overlapped = lowering_.zero >= 2 || lowering_.strategy.overlap.gradients;
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
  Compute what{.op = adam ? Op::Adam : Op::Sgd,
               .phase = Phase::Update,
               .shapes = {{{elements}, types.state}},
               .flops = {static_cast<double>(elements) * (adam ? 12 : 4)}};
  if (sharded && lowering_.zero < 3) what.attributes = "slice=" + lowering_.plan.groups[lowering_.shard_group.index()].name;
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

Instruction ChunkProgram::gather_unit(int index) const {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  return {.name = "all-gather parameters",
          .what = Collective{.kind = CollectiveKind::AllGather,
                             .algorithm = lowering_.strategy.algorithm,
                             .group = lowering_.shard_group,
                             .bytes = size_of(lowering_.types.param) * unit.elements,
                             .dtype = lowering_.types.param},
          .stream = RoleStreams::parameters,
          .records = {{ready_, {index}}},
          .reads = {whole(unit.value)},
          .writes = {whole(unit.value)}};
}

Segment ChunkProgram::finish(bool tied) {
  SegmentBuilder out("update." + std::to_string(chunk_), {});
  const int mark = out.emit({.name = "backward done", .what = Mark{}, .stream = RoleStreams::compute});
  reduce_rest(out, mark, tied);
  for (int index = 0; index < static_cast<int>(state_.units.size()); ++index) {
    Instruction run = update(index);
    const bool gathers_later = lowering_.strategy.overlap.parameters;
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
    Instruction run = gather_unit(index);
    run.waits.push_back({updated_, {index}});
    out.emit(std::move(run));
  }
  return out.take();
}

}  // namespace foreshard
