// Shards: those of frozen tensors, the kinds of axes that tensors are cut over, and their sizes and places. A tensor is cut over axes whose ranks hold different parts of it, and laid out flat over its replicas:
//
//            cut over                              flat cut (ZeRO) over
//   dense    some of Tensor                        some of Context, Data, OuterData
//   expert   every Expert and OuterExpert (other   some of ExpertData
//            experts on each rank), some of ExpertTensor
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/check/check_plan_rules.h"
#include "core/plan/plan_indices.h"

namespace foreshard {
namespace {

std::int64_t times_at_most(std::int64_t bytes, std::int64_t ranks) {
  return bytes > kMostBytes / ranks ? kMostBytes : bytes * ranks;
}

std::int64_t ranks_of_role(const Plan& plan, const Role& role, const std::vector<AxisId>& over) {
  std::int64_t ranks = 1;
  for (const AxisId axis : over)
    if (std::ranges::find(role.axes, axis) != role.axes.end()) ranks *= plan.axes[axis.index()].size;
  return ranks;
}

class ShardCheck {
 public:
  ShardCheck(const Plan& plan, RoleId id, Defects& defects)
      : plan_(plan), role_(plan.roles[id.index()]), id_(id), defects_(defects) {}

  void run() {
    for (const Buffer& buffer : role_.buffers)
      for (const Shard& shard : buffer.holds) check(buffer, shard);
    if (std::ranges::any_of(plan_.tensors, &Tensor::frozen)) check_frozen();
    for (const Buffer& buffer : role_.buffers) check_places(buffer);
    check_parts();
  }

 private:
  void check(const Buffer& buffer, const Shard& shard) {
    const Grid grid = plan_.tensors[shard.tensor.index()].grid;
    for (const AxisId axis : shard.split_by)
      if (wide(axis) && is_data(plan_.axes[axis.index()], grid)) tell(buffer, shard, "cut", "hold the same part of it", axis);
    for (const AxisId axis : shard.flat_by)
      if (wide(axis) && !is_data(plan_.axes[axis.index()], grid)) tell(buffer, shard, "flat", "hold other parts of it", axis);
    for (const AxisId axis : role_.axes) {
      const bool other_experts = grid == Grid::Expert && is_of_experts(plan_.axes[axis.index()]);
      if (wide(axis) && other_experts && std::ranges::find(shard.split_by, axis) == shard.split_by.end())
        tell(buffer, shard, "not cut", "hold other experts", axis);
    }
  }
  std::int64_t ranks_over(const std::vector<AxisId>& axes) const { return ranks_of_role(plan_, role_, axes); }

  void tell_size(const Buffer& buffer, const Shard& shard, const std::string& what) {
    defects_.add("shard-size", "role " + std::to_string(id_.value) + ", buffer \"" + buffer.name + "\"",
                 "the part of \"" + plan_.tensors[shard.tensor.index()].name + "\" at byte " + std::to_string(shard.at.value) +
                     " " + what);
  }

  // Why the tensor cannot be cut like this; empty if it can.
  std::string uneven(const Tensor& tensor, const Shard& shard) const {
    const std::int64_t ranks = ranks_over(shard.split_by);
    if (tensor.shape.empty()) return ranks > 1 ? "is cut over " + std::to_string(ranks) + " ranks, but has no dimension" : "";
    const std::int64_t rows = tensor.shape[static_cast<std::size_t>(shard.dim)];
    if (shard.block_rows.empty())
      return rows % shard.blocks == 0 && rows / shard.blocks % ranks == 0
                 ? ""
                 : "has " + std::to_string(rows) + " rows, which " + std::to_string(shard.blocks) + " blocks of " +
                       std::to_string(ranks) + " ranks do not divide";
    std::int64_t all = 0;
    for (const std::int64_t block : shard.block_rows) {
      all += std::min(block, rows + 1);
      if (block % ranks != 0)
        return "has a block of " + std::to_string(block) + " rows, which " + std::to_string(ranks) + " ranks do not divide";
    }
    return all == rows ? "" : "has blocks of other rows than the " + std::to_string(rows) + " of the tensor";
  }

  // Shards lie one after the other from the first byte to the last. In a buffer that is not resident several rows of them may share the
  // bytes, one row for each use. Behind a flat cut there may be padding.
  void check_places(const Buffer& buffer) {
    if (buffer.holds.empty()) return;
    std::int64_t extent = buffer.bytes.value, end = 0;
    bool flat = false;
    std::set<std::int64_t> ends;
    std::vector<Shard> shards = buffer.holds;
    std::ranges::stable_sort(shards, {}, &Shard::at);
    for (const Shard& shard : shards) {
      const Tensor& tensor = plan_.tensors[shard.tensor.index()];
      if (const std::string why = uneven(tensor, shard); !why.empty()) return tell_size(buffer, shard, why);
      if (!shard.flat_by.empty()) flat = true, extent = times_at_most(buffer.bytes.value, ranks_over(shard.flat_by));
      const std::int64_t bytes = shard_bytes(plan_, role_, buffer, shard);
      if (buffer.resident && shard.at.value != end)
        return tell_size(buffer, shard, "should begin where the one before it ends, at " + std::to_string(end));
      end = std::max(end, shard.at.value + bytes);
      ends.insert(shard.at.value + bytes);
      if (shard.at.value + bytes > extent)
        return tell_size(
            buffer, shard,
            "has " + std::to_string(bytes) + " bytes, which ends behind the " + std::to_string(extent) + " of its buffer");
    }
    for (const Shard& shard : shards)
      if (shard.at.value != 0 && !ends.contains(shard.at.value)) return tell_size(buffer, shard, "begins where no other ends");
    // Gradients and values that are scattered whole are padded to equal parts.
    const std::int64_t padding = 32 * ranks_over(role_.axes) * size_of(buffer.dtype).value;
    if (!flat && extent - end >= padding)
      tell_size(buffer, shards.back(), "ends at byte " + std::to_string(end) + " of " + std::to_string(extent));
  }

  // A tensor is cut in one way, and every part of it is in one resident buffer at most.
  void check_parts() {
    std::map<std::int32_t, const Shard*> cuts;
    std::map<std::int32_t, std::set<TensorPart>> resident;
    for (const Buffer& buffer : role_.buffers)
      for (const Shard& shard : buffer.holds) {
        const auto [known, first] = cuts.try_emplace(shard.tensor.value, &shard);
        const Shard& other = *known->second;
        if (!first && (shard.dim != other.dim || shard.split_by != other.split_by || shard.blocks != other.blocks ||
                       shard.block_rows != other.block_rows))
          tell_size(buffer, shard, "is cut in another way than other parts of the tensor");
        if (buffer.resident && !resident[shard.tensor.value].insert(shard.part).second)
          tell_size(buffer, shard, "is in another resident buffer, too");
      }
  }

  bool holds_frozen(const Buffer& buffer) const {
    return std::ranges::any_of(buffer.holds, [&](const Shard& shard) { return plan_.tensors[shard.tensor.index()].frozen; });
  }
  void check_frozen() {
    for (const Buffer& buffer : role_.buffers)
      for (const Shard& shard : buffer.holds)
        if (plan_.tensors[shard.tensor.index()].frozen && shard.part != TensorPart::Value)
          defects_.add("frozen-tensor", "role " + std::to_string(id_.value) + ", buffer \"" + buffer.name + "\"",
                       "holds more of the frozen \"" + plan_.tensors[shard.tensor.index()].name + "\" than its value");
    std::vector<char> seen(plan_.segments.size(), 0);
    for (std::size_t a = 0; a < role_.actions.size(); ++a) {
      const std::size_t segment = role_.actions[a].segment.index();
      if (std::exchange(seen[segment], 1)) continue;
      const std::vector<Instruction>& instructions = plan_.segments[segment].instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i)
        for (const Use& use : instructions[i].writes)
          if (const Buffer& buffer = role_.buffers[use.buffer.index()]; holds_frozen(buffer))
            defects_.add("frozen-tensor", id_, static_cast<std::int32_t>(a), static_cast<std::int32_t>(i),
                         "writes \"" + buffer.name + "\", which holds frozen tensors");
    }
  }
  bool wide(AxisId axis) const { return plan_.axes[axis.index()].size > 1; }
  void tell(const Buffer& buffer, const Shard& shard, const std::string& how, const std::string& why, AxisId axis) {
    defects_.add("shard-axes", "role " + std::to_string(id_.value) + ", buffer \"" + buffer.name + "\"",
                 "\"" + plan_.tensors[shard.tensor.index()].name + "\" is " + how + " over axis " + std::to_string(axis.value) +
                     " (" + plan_.axes[axis.index()].name + "), whose ranks " + why);
  }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  Defects& defects_;
};

}  // namespace

std::int64_t shard_bytes(const Plan& plan, const Role& role, const Buffer& buffer, const Shard& shard) {
  std::int64_t bytes = size_of(buffer.dtype).value;
  for (const std::int64_t dim : plan.tensors[shard.tensor.index()].shape) bytes *= dim;  // at most kMostBytes elements
  return bytes / ranks_of_role(plan, role, shard.split_by);
}

void check_shards(const Plan& plan, RoleId role, Defects& defects) { ShardCheck(plan, role, defects).run(); }

}  // namespace foreshard
