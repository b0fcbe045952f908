#include "core/plan/axis.h"

#include <algorithm>

namespace foreshard {

bool is_of(const Axis& axis, const Kinds& kinds) {
  return std::ranges::any_of(
      kinds, [&](const AxisKind& kind) { return kind == AxisKind{axis.dense} || kind == AxisKind{axis.expert}; });
}

bool is_data(const Axis& axis, Grid grid) {
  return grid == Grid::Dense ? axis.dense != DenseKind::Tensor : axis.expert == ExpertKind::ExpertData;
}

const RankOrder& default_rank_order() {
  static const RankOrder order = {DenseKind::Tensor, DenseKind::Context, DenseKind::Data, DenseKind::OuterData, std::nullopt};
  return order;
}

bool is_complete(const RankOrder& order) { return std::ranges::is_permutation(with_outer_data(order), default_rank_order()); }

RankOrder with_outer_data(RankOrder order) {
  const auto data = std::find(order.begin(), order.end(), DenseKind::Data);
  if (data != order.end() && std::find(order.begin(), order.end(), DenseKind::OuterData) == order.end())
    order.insert(data + 1, DenseKind::OuterData);
  return order;
}

std::vector<AxisId> in_order(const std::vector<Axis>& axes, const RankOrder& order) {
  std::vector<AxisId> ids;
  for (const std::optional<DenseKind>& kind : order) {
    if (!kind) ids.emplace_back();
    for (std::size_t a = axes.size(); kind && a-- > 0;)
      if (axes[a].dense == *kind) ids.push_back({static_cast<std::int32_t>(a)});
  }
  return ids;
}

const std::vector<std::string>& short_names() {
  static const std::vector<std::string> names = {"tp", "cp", "dp", "dp_outer"};
  return names;
}

std::string axis_name(DenseKind kind, int factor) {
  return short_names()[static_cast<std::size_t>(kind)] + (factor > 1 ? "." + std::to_string(factor) : "");
}

std::string to_text(const RankOrder& order) {
  std::string text;
  for (const std::optional<DenseKind>& kind : order)
    text += (text.empty() ? "" : ",") + (kind ? axis_name(*kind) : std::string("role"));
  return text;
}

}  // namespace foreshard
