#include "exec/tensors.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "exec/host_convert.h"
#include "exec/host_init.h"
#include "exec/rank_place.h"

namespace foreshard {

namespace {

// The piece of a shard that lies in a buffer: elements [first, first + count) of the shard, at element `at` of the buffer.
struct Piece {
  ShardCut cut = {};
  std::int64_t first = 0, count = 0, at = 0;
};

[[noreturn]] void refuse_cut(const Tensor& tensor, std::int64_t rows, std::int64_t parts) {
  throw Error("plan", "tensor " + tensor.name, std::to_string(rows) + " rows",
              "blocks that sum to the tensor, each a multiple of " + std::to_string(parts) + " parts");
}

Piece piece_of(const Plan& plan, const Ranks& ranks, RankId rank, const Buffer& buffer, const Shard& shard) {
  const Tensor& tensor = plan.tensors[shard.tensor.index()];
  Piece piece;
  piece.cut.dim = shard.dim;
  for (const AxisId axis : shard.split_by) {
    const int size = plan.axes[axis.index()].size;
    piece.cut.parts *= size;
    piece.cut.part = piece.cut.part * size + ranks.coordinate(rank, axis);
  }
  const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[static_cast<std::size_t>(shard.dim)];
  piece.cut.blocks = shard.block_rows;
  if (shard.block_rows.empty() && shard.blocks > 1)
    piece.cut.blocks.assign(static_cast<std::size_t>(shard.blocks), rows / shard.blocks);
  std::int64_t sum = 0;
  for (const std::int64_t block : piece.cut.blocks) {
    sum += block;
    if (block % piece.cut.parts != 0) refuse_cut(tensor, block, piece.cut.parts);
  }
  if (piece.cut.blocks.empty() ? rows % piece.cut.parts != 0 : sum != rows) refuse_cut(tensor, rows, piece.cut.parts);
  const std::int64_t each = size_of(buffer.dtype).value;
  const std::int64_t here = buffer.bytes.value / each, begin = shard.at.value / each;
  const std::int64_t size = shard_elements(tensor.shape, piece.cut);
  std::int64_t window = 0;  // where the buffer begins in the uncut one
  for (const AxisId axis : shard.flat_by) window = window * plan.axes[axis.index()].size + ranks.coordinate(rank, axis);
  window *= here;
  const std::int64_t from = std::max(begin, window), to = std::min(begin + size, window + here);
  piece.count = std::max<std::int64_t>(0, to - from);
  piece.first = from - begin;
  piece.at = from - window;
  return piece;
}

// Which slice of each buffer of a role is up to date at the end of a run: that of a group's member, or all (invalid).
std::vector<GroupId> fresh_slices(const Plan& plan, const Role& role) {
  std::vector<GroupId> fresh(role.buffers.size());
  for (const Action& action : role.actions)
    for (const Instruction& instruction : plan.segments[action.segment.index()].instructions) {
      GroupId slice = {};
      if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
        const bool in_place =
            !instruction.reads.empty() && !instruction.writes.empty() && instruction.reads[0] == instruction.writes[0];
        if (!in_place) continue;
        if (collective->kind == CollectiveKind::AllReduce) continue;
        if (collective->kind == CollectiveKind::ReduceScatter) slice = collective->group;
      } else if (const auto* compute = std::get_if<Compute>(&instruction.what)) {
        slice = slice_group(plan, compute->attributes);
      }
      for (const Use& use : instruction.writes)
        if (role.buffers[use.buffer.index()].resident) fresh[use.buffer.index()] = slice;
    }
  return fresh;
}

void put(WholeTensor& whole, const Tensor& tensor, const Piece& piece, const std::vector<double>& values) {
  for (std::int64_t i = 0; i < piece.count; ++i) {
    const auto at = static_cast<std::size_t>(global_element(tensor.shape, piece.cut, piece.first + i));
    const double value = values[static_cast<std::size_t>(i)];
    if (whole.held[at]) {
      const double difference = std::abs(whole.elements[at] - value);
      whole.largest_difference = std::isnan(difference) ? INFINITY : std::max(whole.largest_difference, difference);
      continue;
    }
    whole.elements[at] = value;
    whole.held[at] = 1;
  }
}

}  // namespace

void fill_initial_state(const Plan& plan, const Ranks& ranks, RankId rank, const RankMemory& memory, std::uint64_t seed) {
  const Role& role = plan.roles[ranks.role(rank).index()];
  for (std::size_t b = 0; b < role.buffers.size(); ++b) {
    const Buffer& buffer = role.buffers[b];
    for (const Shard& shard : buffer.holds) {
      if (shard.part != TensorPart::Value && shard.part != TensorPart::Master) continue;
      const Piece piece = piece_of(plan, ranks, rank, buffer, shard);
      if (piece.count == 0) continue;
      std::byte* data = memory.address(BufferId{static_cast<std::int32_t>(b)}) + piece.at * size_of(buffer.dtype).value;
      fill_initial(plan.tensors[shard.tensor.index()], piece.cut, piece.first, seed, {data, piece.count, buffer.dtype});
    }
  }
}

std::vector<WholeTensor> gather_tensors(const Plan& plan, const Ranks& ranks, const std::vector<const RankMemory*>& memories,
                                        TensorPart part) {
  std::vector<WholeTensor> all(plan.tensors.size());
  for (std::size_t t = 0; t < all.size(); ++t) {
    std::int64_t size = 1;
    for (const std::int64_t dim : plan.tensors[t].shape) size *= dim;
    all[t].elements.resize(static_cast<std::size_t>(size));
    all[t].held.resize(static_cast<std::size_t>(size));
  }
  for (std::int32_t r = 0; r < ranks.count(); ++r) {
    const RankId rank{r};
    const Role& role = plan.roles[ranks.role(rank).index()];
    const std::vector<GroupId> fresh = fresh_slices(plan, role);
    for (std::size_t b = 0; b < role.buffers.size(); ++b) {
      const Buffer& buffer = role.buffers[b];
      const std::int64_t each = size_of(buffer.dtype).value, here = buffer.bytes.value / each;
      if (!buffer.resident) continue;  // holds something only while it is alive
      std::int64_t from = 0, to = here;
      if (fresh[b].valid()) {
        const std::vector<RankId> members = ranks.members(fresh[b], rank);
        const auto own = std::find(members.begin(), members.end(), rank) - members.begin();
        const std::int64_t slice = here / static_cast<std::int64_t>(members.size());
        from = slice * own, to = from + slice;
      }
      for (const Shard& shard : buffer.holds) {
        if (shard.part != part) continue;
        Piece piece = piece_of(plan, ranks, rank, buffer, shard);
        const std::int64_t begin = std::max(piece.at, from), end = std::min(piece.at + piece.count, to);
        if (begin >= end) continue;
        piece.first += begin - piece.at;
        piece.at = begin, piece.count = end - begin;
        std::vector<double> values(static_cast<std::size_t>(piece.count));
        const RankMemory& memory = *memories[static_cast<std::size_t>(r)];
        const Operand stored{memory.address(BufferId{static_cast<std::int32_t>(b)}), here, buffer.dtype};
        host::load(stored, piece.at, piece.count, values.data());
        put(all[shard.tensor.index()], plan.tensors[shard.tensor.index()], piece, values);
      }
    }
  }
  return all;
}

}  // namespace foreshard
