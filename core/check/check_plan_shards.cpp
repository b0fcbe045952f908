// Shards: those of frozen tensors, and the kinds of axes that tensors are cut over. A tensor is cut over axes whose ranks hold different parts of it, and laid out flat over its replicas:
//
//            cut over                              flat cut (ZeRO) over
//   dense    some of Tensor                        some of Context, Data, OuterData
//   expert   every Expert and OuterExpert (other   some of ExpertData
//            experts on each rank), some of ExpertTensor
#include <algorithm>
#include <utility>

#include "core/check/check_plan_rules.h"

namespace foreshard {
namespace {

class ShardCheck {
 public:
  ShardCheck(const Plan& plan, RoleId id, Defects& defects)
      : plan_(plan), role_(plan.roles[id.index()]), id_(id), defects_(defects) {}

  void run() {
    for (const Buffer& buffer : role_.buffers)
      for (const Shard& shard : buffer.holds) check(buffer, shard);
    if (std::ranges::any_of(plan_.tensors, &Tensor::frozen)) check_frozen();
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

void check_shards(const Plan& plan, RoleId role, Defects& defects) { ShardCheck(plan, role, defects).run(); }

}  // namespace foreshard
