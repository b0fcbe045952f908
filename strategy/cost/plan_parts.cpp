#include "strategy/cost/plan_parts.h"

#include <algorithm>
#include <cmath>

#include "core/plan/plan_words.h"

namespace foreshard {

namespace {

constexpr Bytes kLatencyOnly{1 << 16};  // collectives below

bool of_update(const Compute& what) { return what.phase == Phase::Update || is_of_update(what.op); }

bool is_end(const Role& role, const Instruction& run) {
  if (!run.layer.valid() || run.layer.index() >= role.layers.size()) return false;
  const std::string& name = role.layers[run.layer.index()];
  return name == "embedding" || name == "head";
}

double place(double size) { return std::log2(std::max(size, 1.0)); }

}  // namespace

bool moves_state(const Role& role, const Instruction& run) {
  const auto state = [&](const Use& use) {
    const Category of = role.buffers[use.buffer.index()].category;
    return of == Category::Parameters || of == Category::Gradients || of == Category::Optimizer;
  };
  return std::ranges::any_of(run.reads, state) || std::ranges::any_of(run.writes, state);
}

bool lies_between_operators(const Plan& plan, const Role& role, const Instruction& run) {
  const auto* what = std::get_if<Collective>(&run.what);
  if (!what) return false;
  const Group& group = plan.groups[what->group.index()];
  const bool inside = std::ranges::all_of(group.over, [&](AxisId axis) {
    const DenseKind kind = plan.axes[axis.index()].dense;
    return kind == DenseKind::Tensor || kind == DenseKind::Context;
  });
  return inside && !group.over.empty() && group.roles.empty() && !moves_state(role, run);
}

BlockPlace place_of(const Use& use) {
  const auto number = [](const auto& slot) {
    if constexpr (std::is_same_v<decltype(slot), const std::int32_t&>)
      return slot;
    else
      return slot.value;
  };
  return {use.buffer.value, {use.slot.which.index(), std::visit(number, use.slot.which)}};
}

std::optional<CostPart> part_of(const Plan& plan, const Role& role, const Instruction& run) {
  if (const auto* what = std::get_if<Compute>(&run.what)) {
    if (of_update(*what)) return CostPart::Update;
    return is_end(role, run) ? CostPart::Ends : CostPart::Layer;
  }
  if (std::holds_alternative<HostCompute>(run.what)) return CostPart::Update;
  if (std::holds_alternative<Exchange>(run.what)) return CostPart::Transfer;
  const auto* what = std::get_if<Collective>(&run.what);
  if (!what || what->bytes < kLatencyOnly) return {};
  return lies_between_operators(plan, role, run) ? CostPart::Tensor : CostPart::Gradients;
}

PartShapes::PartShapes(const Plan& plan, const FrameworkPreset& preset) : plan_(plan), ranks_(plan), framework_(preset.name) {
  for (const Role& role : plan.roles) layers_.push_back(layer_of(role));
}

PartShapes::Layer PartShapes::layer_of(const Role& role) const {
  Layer layer;
  for (const AxisId axis : role.axes)
    if (plan_.axes[axis.index()].dense == DenseKind::Tensor) layer.tp *= plan_.axes[axis.index()].size;
  for (const Action& action : role.actions)
    for (const Instruction& run : plan_.segments[action.segment.index()].instructions) {
      const auto* what = std::get_if<Compute>(&run.what);
      if (!what || what->phase != Phase::Forward || !run.layer.valid() || is_end(role, run) || what->shapes.empty()) continue;
      const std::vector<std::int64_t>& dims = what->shapes.front().dims;
      if (is_matrix_product(what->op) && layer.format.empty() && dims.size() == 4) {
        layer.format = word(what->shapes.front().dtype);
        layer.rows = static_cast<double>(dims[1]), layer.hidden = static_cast<double>(dims[3]);
      }
      const bool scores = is<ops::Scores>(what->op);
      if ((!is<ops::Attention>(what->op) && !scores) || dims.size() != 4) continue;
      layer.attention = scores ? "scores" : "flash";
      layer.samples = layer.rows / static_cast<double>(std::max<std::int64_t>(1, dims[1]));
      layer.head = static_cast<double>(dims[3]);
      return layer;
    }
  return layer;
}

PartShape PartShapes::of(RoleId role, CostPart part, const Instruction& run) const {
  const Layer& layer = layers_[role.index()];
  switch (part) {
    case CostPart::Layer:
    case CostPart::Ends:
      return {part,
              {framework_, layer.format, layer.attention},
              {place(layer.rows), place(layer.samples), place(layer.hidden), place(layer.tp), place(layer.head)}};
    case CostPart::Tensor: return {part, {framework_}, {place(layer.tp), place(layer.rows * layer.hidden)}};
    case CostPart::Gradients: {
      const auto* what = std::get_if<Collective>(&run.what);
      return {part, {framework_}, {place(what ? ranks_.members(what->group, role) : 1)}};
    }
    case CostPart::Update:
    case CostPart::Transfer: return {part, {framework_}, {}};
  }
  return {};
}

Cost scaled(const Cost& cost, double factor) {
  Cost longer = cost;
  longer.busy = to_nanoseconds(to_seconds(cost.busy) * factor);
  longer.wire_factor *= factor;
  return longer;
}

}  // namespace foreshard
