#include "exec/data/tensors.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/count_text.h"
#include "core/base/error.h"
#include "exec/arithmetic/host_convert.h"
#include "exec/arithmetic/host_init.h"
#include "exec/rank/rank_place.h"

namespace foreshard {

namespace {

// The piece of a shard that lies in a buffer: elements [first, first + count) of the shard, at element `at` of the buffer.
struct BufferPiece {
  ShardCut cut = {};
  std::int64_t first = 0, count = 0, at = 0;
};

[[noreturn]] void refuse_cut(const Tensor& tensor, std::int64_t rows, std::int64_t parts) {
  throw Error("plan", "tensor " + tensor.name, counted(rows, "row"),
              "blocks that sum to the tensor, each a multiple of " + std::to_string(parts) + " parts");
}

BufferPiece piece_of(const Plan& plan, const Ranks& ranks, RankId rank, const Buffer& buffer, const Shard& shard) {
  const Tensor& tensor = plan.tensors[shard.tensor.index()];
  BufferPiece piece;
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
  std::int64_t window = 0;  // position at which the buffer begins in the uncut one
  for (const AxisId axis : shard.flat_by) window = window * plan.axes[axis.index()].size + ranks.coordinate(rank, axis);
  window *= here;
  const std::int64_t from = std::max(begin, window), to = std::min(begin + size, window + here);
  piece.count = std::max<std::int64_t>(0, to - from);
  piece.first = from - begin;
  piece.at = from - window;
  return piece;
}

// [buffer of the role]: the group whose members each have only their slice of the buffer up to date at the end of a run; invalid: all of it
// is.
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
        slice = compute->slice;
      } else if (const auto* copy = std::get_if<Copy>(&instruction.what)) {
        slice = copy->slice;
      }
      for (const Use& use : instruction.writes)
        if (role.buffers[use.buffer.index()].resident) fresh[use.buffer.index()] = slice;
    }
  return fresh;
}

void put(WholeTensor& whole, const Tensor& tensor, const ShardCut& cut, std::int64_t first, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::size_t>(global_element(tensor.shape, cut, first + static_cast<std::int64_t>(i)));
    if (whole.held[at]) {
      const double difference = std::abs(whole.elements[at] - values[i]);
      whole.largest_difference = std::isnan(difference) ? INFINITY : std::max(whole.largest_difference, difference);
      continue;
    }
    whole.elements[at] = values[i];
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
      const BufferPiece piece = piece_of(plan, ranks, rank, buffer, shard);
      if (piece.count == 0) continue;
      const Bytes each = size_of(buffer.dtype);
      std::vector<std::byte> values(static_cast<std::size_t>(piece.count * each.value));
      fill_initial(plan.tensors[shard.tensor.index()], piece.cut, piece.first, seed,
                   {values.data(), piece.count, buffer.dtype});
      memory.write({static_cast<std::int32_t>(b)}, each * piece.at, values);
    }
  }
}

TensorPieces::TensorPieces(const Plan& plan, const Ranks& ranks) : plan_(plan), pieces_(plan.tensors.size()) {
  std::vector<std::vector<GroupId>> fresh;
  for (const Role& role : plan.roles) fresh.push_back(fresh_slices(plan, role));
  for (std::int32_t r = 0; r < ranks.count(); ++r) {
    const std::size_t role = ranks.role({r}).index();
    for (std::size_t b = 0; b < plan.roles[role].buffers.size(); ++b)
      add(ranks, {r}, {static_cast<std::int32_t>(b)}, fresh[role][b]);
  }
}

void TensorPieces::add(const Ranks& ranks, RankId rank, BufferId id, GroupId fresh) {
  const Buffer& buffer = plan_.roles[ranks.role(rank).index()].buffers[id.index()];
  if (!buffer.resident) return;  // its contents do not survive a run
  const std::int64_t here = buffer.bytes.value / size_of(buffer.dtype).value;
  for (const Shard& shard : buffer.holds) {
    const BufferPiece of = piece_of(plan_, ranks, rank, buffer, shard);
    if (of.count == 0) continue;
    Piece piece{.rank = rank,
                .buffer = id,
                .dtype = buffer.dtype,
                .part = shard.part,
                .cut = of.cut,
                .first = of.first,
                .count = of.count,
                .at = of.at,
                .fresh_to = here};
    if (fresh.valid() && shard.flat_by.empty()) {  // a buffer with flat_by holds nothing but its slice
      const std::vector<RankId> members = ranks.members(fresh, rank);
      const std::int64_t slice = here / static_cast<std::int64_t>(members.size());
      piece.fresh_from = slice * (std::find(members.begin(), members.end(), rank) - members.begin());
      piece.fresh_to = piece.fresh_from + slice;
    }
    pieces_[shard.tensor.index()].push_back(std::move(piece));
  }
}

std::optional<DType> TensorPieces::dtype(TensorId tensor, TensorPart part) const {
  std::optional<DType> widest;
  for (const Piece& piece : pieces_[tensor.index()])
    if (piece.part == part && (!widest || size_of(piece.dtype) > size_of(*widest))) widest = piece.dtype;
  return widest;
}

std::int64_t TensorPieces::Piece::begin() const { return std::max(at, fresh_from); }
std::int64_t TensorPieces::Piece::end() const { return std::max(begin(), std::min(at + count, fresh_to)); }

std::vector<double> TensorPieces::Piece::values(const RankMemory& memory) const {
  std::vector<double> all(static_cast<std::size_t>(end() - begin()));
  if (all.empty()) return all;
  const std::int64_t count = end() - begin();
  std::vector<std::byte> stored = memory.read(buffer, size_of(dtype) * begin(), size_of(dtype) * count);
  host::load({stored.data(), count, dtype}, 0, count, all.data());
  return all;
}

WholeTensor TensorPieces::empty(TensorId id) const {
  std::size_t size = 1;
  for (const std::int64_t dim : plan_.tensors[id.index()].shape) size *= static_cast<std::size_t>(dim);
  return {.elements = std::vector<double>(size), .held = std::vector<char>(size)};
}

WholeTensor TensorPieces::gather(const std::vector<const RankMemory*>& memories, TensorId id, TensorPart part) const {
  WholeTensor whole = empty(id);
  for (const Piece& piece : pieces_[id.index()])
    if (const RankMemory* memory = memories[piece.rank.index()]; memory && piece.part == part)
      put(whole, plan_.tensors[id.index()], piece.cut, piece.first + piece.begin() - piece.at, piece.values(*memory));
  return whole;
}

WholeTensor TensorPieces::share(const std::vector<const RankMemory*>& memories, TensorId id, TensorPart part) const {
  constexpr char kElsewhere = 2;
  WholeTensor whole = empty(id);
  for (const Piece& piece : pieces_[id.index()]) {
    if (piece.part != part) continue;
    const RankMemory* memory = memories[piece.rank.index()];
    const std::vector<double> values = memory ? piece.values(*memory) : std::vector<double>();
    for (std::int64_t i = piece.begin(); i < piece.end(); ++i) {
      const auto at =
          static_cast<std::size_t>(global_element(plan_.tensors[id.index()].shape, piece.cut, piece.first + i - piece.at));
      if (whole.held[at]) continue;
      whole.held[at] = memory ? 1 : kElsewhere;
      if (memory) whole.elements[at] = values[static_cast<std::size_t>(i - piece.begin())];
    }
  }
  std::replace(whole.held.begin(), whole.held.end(), kElsewhere, char{0});
  return whole;
}

bool TensorPieces::kept(const std::vector<const RankMemory*>& memories, TensorId id, TensorPart part) const {
  const std::vector<Piece>& pieces = pieces_[id.index()];
  return std::any_of(pieces.begin(), pieces.end(),
                     [&](const Piece& piece) { return piece.part == part && memories[piece.rank.index()]; });
}

void TensorPieces::scatter(const std::vector<const RankMemory*>& memories, TensorId id, TensorPart part,
                           const std::vector<double>& elements) const {
  const Tensor& tensor = plan_.tensors[id.index()];
  for (const Piece& piece : pieces_[id.index()]) {
    const RankMemory* memory = memories[piece.rank.index()];
    if (piece.part != part || !memory) continue;
    std::vector<double> values(static_cast<std::size_t>(piece.count));
    for (std::int64_t i = 0; i < piece.count; ++i)
      values[static_cast<std::size_t>(i)] =
          elements[static_cast<std::size_t>(global_element(tensor.shape, piece.cut, piece.first + i))];
    const Bytes each = size_of(piece.dtype);
    std::vector<std::byte> stored(static_cast<std::size_t>(piece.count * each.value));
    host::store(values.data(), piece.count, {stored.data(), piece.count, piece.dtype}, 0);
    memory->write(piece.buffer, each * piece.at, stored);
  }
}

std::vector<WholeTensor> gather_tensors(const Plan& plan, const Ranks& ranks, const std::vector<const RankMemory*>& memories,
                                        TensorPart part) {
  const TensorPieces pieces(plan, ranks);
  std::vector<WholeTensor> all;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t)
    all.push_back(pieces.gather(memories, {static_cast<std::int32_t>(t)}, part));
  return all;
}

}  // namespace foreshard
