#include "strategy/cost/shard_messages.h"

#include <algorithm>

#include "strategy/cost/plan_parts.h"

namespace foreshard {

namespace {

std::int64_t elements_of(const Plan& plan, const Shard& shard) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : plan.tensors[shard.tensor.index()].shape) elements *= dim;
  return elements;
}

std::int64_t elements_in(const Plan& plan, const Buffer& buffer) {
  std::int64_t elements = 0;
  for (const Shard& shard : buffer.holds) elements += elements_of(plan, shard);
  return elements;
}

int tensors_in(const Plan& plan, const FrameworkPreset& preset, const Buffer& buffer) {
  return static_cast<int>(
      std::ranges::count_if(buffer.holds, [&](const Shard& shard) { return elements_of(plan, shard) >= preset.shards.least; }));
}

// Of a sum of whole gradients: data parallelism without ZeRO sends buckets. A bucket takes whole tensors until it is full; the last one is
// filled by what comes after these.
double buckets(const Plan& plan, const FrameworkPreset& preset, const Collective& what, const Buffer& buffer) {
  if (preset.shards.bucket == 0) return 1;
  const std::int64_t whole = elements_in(plan, buffer);
  const double elements = static_cast<double>(what.bytes.value) / static_cast<double>(size_of(what.dtype).value);
  const double part = whole > 0 ? elements / static_cast<double>(whole) : 0;  // of each tensor, on this rank
  double full = 0, filled = 0;
  for (const Shard& shard : buffer.holds) {
    filled += part * static_cast<double>(elements_of(plan, shard)) / static_cast<double>(preset.shards.bucket);
    if (filled >= 1) ++full, filled = 0;
  }
  return std::max(1.0, full + filled);
}

}  // namespace

ShardMessages shard_messages(const Plan& plan, const Role& role, const FrameworkPreset& preset, const Collective& what,
                             const Instruction& run, int members) {
  if (!moves_state(role, run)) return {};
  if (what.kind == CollectiveKind::AllReduce)
    return {.count = buckets(plan, preset, what, role.buffers[run.reads.front().buffer.index()])};
  const bool gathers = what.kind == CollectiveKind::AllGather;
  const ShardCommunication how = preset.shards.communication;
  if (how == ShardCommunication::Unit || (!gathers && what.kind != CollectiveKind::ReduceScatter)) return {};
  const std::vector<Use>& shards = gathers ? run.reads : run.writes;
  if (shards.empty()) return {};
  const int tensors = tensors_in(plan, preset, role.buffers[shards.front().buffer.index()]);
  const bool in_place = run.reads.front().buffer == run.writes.front().buffer;  // ZeRO 1 and 2: flat buckets
  const Seconds parts = preset.host.per_part.value_or(preset.host.per_kernel) * members;
  switch (how) {
    case ShardCommunication::Unit: return {};
    case ShardCommunication::Tensor:
      // Two dispatches for each rank's part of a tensor: Python cuts it out (`narrow`), and PyTorch's all_gather and reduce_scatter of lists
      // copy it.
      return in_place || tensors < 2 ? ShardMessages{}
                                     : ShardMessages{.count = static_cast<double>(tensors), .host = 2.0 * parts};
    case ShardCommunication::Slices: {
      // One sum and one gather for all parameters, of which this is a share. The host cuts the slices while the device still sums. Behind
      // the gather it issues a copy for each.
      std::int64_t all = 0;
      for (const Buffer& buffer : role.buffers)
        if (buffer.category == Category::Parameters) all += elements_in(plan, buffer);
      const auto own = static_cast<double>(elements_in(plan, role.buffers[shards.front().buffer.index()]));
      const double share = own > 0 ? std::min(1.0, own / static_cast<double>(std::max<std::int64_t>(all, 1))) : 1.0;
      return gathers ? ShardMessages{.count = share, .host = parts * (tensors / share)}
                     : ShardMessages{.count = share, .volume = 2};
    }
    case ShardCommunication::WideSums: {
      // Aleph-Alpha/scaling optimizer/allreduce.py, bytes per element of 16 bits: copied into a flat buffer 4, divided by the number of ranks
      // 4, cast to fp32 6, cast back 6, copied back 4. The gather of lists copies its result (parameter_group.py, step_sequel).
      const double wider = static_cast<double>(size_of(DType::F32).value) / static_cast<double>(size_of(what.dtype).value);
      return gathers ? ShardMessages{.copies = 2 * what.bytes}
                     : ShardMessages{.volume = 2 * wider, .copies = {what.bytes.value * (wider > 1 ? 12 : 6)}};
    }
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
