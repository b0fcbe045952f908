#include "strategy/cost/shard_messages.h"

#include <algorithm>

#include "strategy/cost/plan_parts.h"

namespace foreshard {

namespace {

int tensors_in(const Plan& plan, const FrameworkPreset& preset, const Buffer& buffer) {
  int count = 0;
  for (const Shard& shard : buffer.holds) {
    std::int64_t elements = 1;
    for (const std::int64_t dim : plan.tensors[shard.tensor.index()].shape) elements *= dim;
    count += elements >= preset.shards.least ? 1 : 0;
  }
  return count;
}

// Of a sum of whole gradients: data parallelism without ZeRO sends buckets.
double buckets(const FrameworkPreset& preset, const Collective& what) {
  if (preset.shards.bucket == 0) return 1;
  const double elements = static_cast<double>(what.bytes.value) / static_cast<double>(size_of(what.dtype).value);
  return std::max(1.0, elements / static_cast<double>(preset.shards.bucket));
}

}  // namespace

ShardMessages shard_messages(const Plan& plan, const Role& role, const FrameworkPreset& preset, const Collective& what,
                             const Instruction& run, int members) {
  if (!moves_state(role, run)) return {};
  if (what.kind == CollectiveKind::AllReduce) return {.count = buckets(preset, what)};
  const bool gathers = what.kind == CollectiveKind::AllGather;
  const ShardCommunication how = preset.shards.communication;
  if (how == ShardCommunication::Unit || (!gathers && what.kind != CollectiveKind::ReduceScatter)) return {};
  const std::vector<Use>& shards = gathers ? run.reads : run.writes;
  if (shards.empty()) return {};
  const int tensors = tensors_in(plan, preset, role.buffers[shards.front().buffer.index()]);
  const bool in_place = run.reads.front().buffer == run.writes.front().buffer;  // ZeRO 1 and 2: flat buckets
  // Two dispatches for each rank's part of a tensor: Python cuts it out (`narrow`, a slice), and PyTorch's all_gather and reduce_scatter of
  // lists, or nanotron, copy it.
  const Seconds parts = 2.0 * preset.host.per_part.value_or(preset.host.per_kernel) * members;
  switch (how) {
    case ShardCommunication::Unit: return {};
    case ShardCommunication::Tensor:
      return in_place || tensors < 2 ? ShardMessages{} : ShardMessages{.count = static_cast<double>(tensors), .host = parts};
    case ShardCommunication::Slices:
      // Meanwhile the device sums the gradients, which in fp32 are twice the bytes, and all-reduced.
      return gathers ? ShardMessages{.host = parts * tensors, .ahead = 4} : ShardMessages{.volume = 2};
    case ShardCommunication::Owner: break;
  }
  int all = 0;  // tensors of all buffers: those of one owner are sent in one message
  for (const Buffer& buffer : role.buffers)
    if (buffer.category == Category::Parameters) all += tensors_in(plan, preset, buffer);
  return {.count = std::max(1.0, tensors * std::min(1.0, members / static_cast<double>(std::max(all, 1))))};
}

Bytes shard_copy_bytes(const FrameworkPreset& preset, const Collective& what) {
  if (!preset.shards.copies) return {};
  const bool wide = what.dtype == DType::F32;
  if (what.kind == CollectiveKind::AllGather) return wide && preset.shards.gathers_narrow ? what.bytes : 2 * what.bytes;
  if (what.kind == CollectiveKind::ReduceScatter) return wide ? what.bytes + Bytes{what.bytes.value / 2} : 2 * what.bytes;
  return {};
}

std::int64_t clipped_slices(const Plan& plan, const FrameworkPreset& preset, const Compute& what) {
  if (!preset.shards.clips_whole || !is<ops::GradNorm, ops::ClipScale>(what.op) || !what.slice.valid()) return 1;
  std::int64_t slices = 1;
  for (const AxisId axis : plan.groups[what.slice.index()].over) slices *= plan.axes[axis.index()].size;
  return slices;
}

}  // namespace foreshard
