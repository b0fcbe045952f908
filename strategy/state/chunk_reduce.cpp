// Gradient sums over replicas, bucket by bucket.
#include "strategy/lower/chunk_program.h"

namespace foreshard {

static Use whole(BufferId buffer, int slot = 0) { return {.buffer = buffer, .slot = {slot}}; }

Instruction ChunkProgram::sum(const char* name, CollectiveKind kind, GroupId group, Bytes bytes, const Use& from,
                              const Use& to) const {
  return {.name = name,
          .what = Collective{.kind = kind,
                             .algorithm = lowering_.strategy.algorithm,
                             .group = group,
                             .bytes = bytes,
                             .dtype = lowering_.types.grad},
          .stream = RoleStreams::replicas,
          .reads = {from},
          .writes = {to}};
}

bool ChunkProgram::needs_reduction(int unit) const {
  const StateUnit& it = state_.units[static_cast<std::size_t>(unit)];
  if (it.tied && lowering_.tied_over_replicas) return false;  // with the other copy, in the end
  return !it.borrowed && (lowering_.replicas > 1 || it.partial_over_tp);
}

// Sums one unit: over tp where it is partial, then over the replicas; ZeRO leaves each rank its shard of the sum.
//   ZeRO 0        all-reduce in place
//   ZeRO 1        reduce-scatter in place, then all-reduce of the own shard over the other sharding groups
//   ZeRO 2-3      reduce-scatter of the full gradient into the shard, which accumulates; over the other groups at the end
void ChunkProgram::reduce_unit(SegmentBuilder& out, int index, const BackwardVariant& variant) {
  const StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
  const Bytes bytes = size_of(lowering_.types.grad) * unit.elements;
  const Bytes shard = size_of(lowering_.types.grad) * (unit.elements / lowering_.shards);
  const Use full = lowering_.zero >= 2 ? whole(unit.full_gradient, unit.full_gradient_slot) : whole(unit.gradient);
  const Use own = whole(unit.gradient);
  int last = -1;
  if (unit.partial_over_tp)
    last = out.emit(sum("sum over tp", CollectiveKind::AllReduce, lowering_.tp_gradient_group, bytes, full, full));
  if (lowering_.zero == 0 && lowering_.replicas > 1)
    last = out.emit(sum("all-reduce gradients", CollectiveKind::AllReduce, lowering_.data_group, bytes, full, full));
  if (lowering_.zero >= 1) {
    Instruction scatter =
        sum("reduce-scatter gradients", CollectiveKind::ReduceScatter, lowering_.shard_group, bytes, full, own);
    if (lowering_.zero >= 2) {
      if (variant.accumulates)
        std::get<Collective>(scatter.what).accumulate = true;
      else
        scatter.waits.push_back({ready_, {index}});  // the last update has read the shard
    }
    last = out.emit(std::move(scatter));
    if (lowering_.zero >= 2) {
      const Block block{full.buffer, full.slot};
      if (!unit.standalone) out.record_after_last_use(block, {ring_free_, block.slot});
      out.release(block);
    }
    if (lowering_.replica_group.valid() && variant.last) {
      Instruction rest = sum("all-reduce shards", CollectiveKind::AllReduce, lowering_.replica_group, shard, own, own);
      if (lowering_.zero == 1)  // the buffer is of full size: the own slice of it
        std::get<Collective>(rest.what).slice = lowering_.shard_group;
      last = out.emit(std::move(rest));
    }
  }
  const bool reused = lowering_.zero >= 2 && unit.standalone;  // its full gradient waits for this event
  if (last >= 0 && (variant.last || reused)) out.at(last).records.push_back({reduced_, {index}});
}

void ChunkProgram::reduce_layer(SegmentBuilder& out, int layer, const BackwardVariant& variant) {
  if (lowering_.zero < 2 && !(variant.last && lowering_.strategy.overlap->gradients)) return;
  for (int unit = 0; unit < static_cast<int>(state_.units.size()); ++unit)
    if (state_.units[static_cast<std::size_t>(unit)].last_layer == layer && needs_reduction(unit)) {
      const int first = out.size();
      reduce_unit(out, unit, variant);
      if (mark_ >= 0) out.at(first).after.push_back(mark_);
    }
}

}  // namespace foreshard
