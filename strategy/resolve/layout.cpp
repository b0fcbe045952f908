#include "strategy/resolve/layout.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace foreshard {

namespace {

using Borders = std::vector<std::int64_t>;  // [n]: product of the n fastest degrees; the last one is the number of ranks

bool nests(std::int64_t border, const Borders& others) {
  return std::ranges::all_of(others, [&](std::int64_t other) { return other % border == 0 || border % other == 0; });
}

// As text: the sizes possible for a degree above faster degrees of product `below`, that is, those whose border nests in the dense grid.
std::string sizes_that_do(std::int64_t below, const Borders& dense) {
  std::string text;
  const std::int64_t most = dense.back() / below;
  for (std::int64_t size = 1; size <= most; ++size)
    if (dense.back() % (below * size) == 0 && nests(below * size, dense))
      text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text;
}

std::optional<Infeasible> refuse(const char* degree, std::int64_t size, std::int64_t below, const Borders& dense) {
  const std::int64_t border = below * size;
  if (dense.back() % border == 0 && nests(border, dense)) return {};
  std::string products;
  for (std::size_t d = 0; d < dense.size(); ++d)
    if (d == 0 || dense[d] != dense[d - 1]) products += (d == 0 ? "" : ", ") + std::to_string(dense[d]);
  return Infeasible{.reason = std::string(degree) + " degree " + std::to_string(size) + " makes groups of " +
                              std::to_string(border) + " ranks, which lie across those of the dense grid (" + products + ")",
                    .would_help = {std::string(degree) + " degree " + sizes_that_do(below, dense)}};
}

}  // namespace

std::variant<std::vector<Axis>, Infeasible> refined_axes(const std::vector<DenseDegree>& dense, const ExpertDegrees& expert) {
  Borders borders = {1};
  for (const DenseDegree& degree : dense) borders.push_back(borders.back() * degree.size);
  if (auto refused = refuse("expert-tensor", expert.tensor, 1, borders)) return *refused;
  if (auto refused = refuse("expert", expert.experts, expert.tensor, borders)) return *refused;
  const std::int64_t tensor = expert.tensor, experts = tensor * expert.experts, node = experts / expert.nodes;
  if (auto refused = refuse("inner expert", node / tensor, tensor, borders)) return *refused;

  std::vector<Axis> axes;
  std::array<int, kDenseKinds> factors = {};
  for (std::size_t d = 0; d < dense.size(); ++d) {
    Borders cuts = {borders[d]};
    for (const std::int64_t cut : {tensor, node, experts})
      if (cut > cuts.back() && cut < borders[d + 1]) cuts.push_back(cut);
    cuts.push_back(borders[d + 1]);
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      if (cuts[c + 1] == cuts[c]) continue;
      const ExpertKind kind = cuts[c + 1] <= tensor    ? ExpertKind::ExpertTensor
                              : cuts[c + 1] <= node    ? ExpertKind::Expert
                              : cuts[c + 1] <= experts ? ExpertKind::OuterExpert
                                                       : ExpertKind::ExpertData;
      axes.push_back({.name = axis_name(dense[d].kind, ++factors[static_cast<std::size_t>(dense[d].kind)]),
                      .dense = dense[d].kind,
                      .expert = kind,
                      .size = static_cast<int>(cuts[c + 1] / cuts[c])});
    }
  }
  return axes;
}

std::variant<Layout, Infeasible> rank_layout(const Strategy& s) {
  const int group = s.communication.compress_group;
  const int inner = s.zero.stage > 0 ? s.zero.group : group > 1 ? group / s.cp : s.dp;
  const std::array<int, kDenseKinds> sizes = {s.tp, s.cp, inner, s.dp / inner};
  std::vector<DenseDegree> dense;
  for (const std::optional<DenseKind>& kind : s.placement)
    if (kind) dense.push_back({*kind, sizes[static_cast<std::size_t>(*kind)]});
  auto refined = refined_axes(dense, {.tensor = s.experts.etp, .experts = s.experts.ep, .nodes = s.experts.nodes()});
  if (auto* refused = std::get_if<Infeasible>(&refined)) return *refused;
  Layout layout{.axes = std::get<std::vector<Axis>>(std::move(refined))};
  std::ranges::reverse(layout.axes);
  std::ranges::stable_sort(layout.axes, [](const Axis& a, const Axis& b) { return a.dense > b.dense; });
  layout.fastest_first = in_order(layout.axes, s.placement);
  // Experts are dealt out in the order of the axes, so that those of a node are consecutive only if its axes come last.
  bool inside = false;
  for (const Axis& axis : layout.axes) {
    if (axis.expert == ExpertKind::OuterExpert && inside)
      return Infeasible{
          .reason = "the ranks of an expert group on one node do not have consecutive experts with this placement",
          .would_help = {"--placement tp,cp,dp,role", "--expert-dispatcher all-to-all"}};
    inside = inside || axis.expert == ExpertKind::Expert;
  }
  return layout;
}

}  // namespace foreshard
