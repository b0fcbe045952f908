#include "replay/rank_speed.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace foreshard::player {

double share_of_rows(const Instruction& instruction) {
  const auto* compute = std::get_if<Compute>(&instruction.what);
  const auto* product = compute ? std::get_if<ops::GroupedMatMul>(&compute->op) : nullptr;
  return product ? product->others : 1;
}

namespace {

bool has_fewer_rows(const Plan& plan, const Ranks& ranks, RankId rank) {
  return std::ranges::any_of(plan.roles[ranks.role(rank).index()].axes, [&](AxisId axis) {
    return is_of_experts(plan.axes[axis.index()]) && ranks.coordinate(rank, axis) > 0;
  });
}

}  // namespace

std::vector<RankSpeed> find_paces(const Plan& plan, const Ranks& ranks, const ReplayOptions& options) {
  std::vector<RankSpeed> paces(static_cast<std::size_t>(ranks.count()));
  for (const Straggler& straggler : options.stragglers) {
    if (straggler.rank.value < 0 || straggler.rank.value >= ranks.count())
      throw Error("options", "straggler", "rank " + std::to_string(straggler.rank.value),
                  "a rank from 0 to " + std::to_string(ranks.count() - 1));
    if (!(straggler.slowdown > 0 && straggler.slowdown <= 1e6))
      throw Error("options", "straggler", "slowdown " + std::to_string(straggler.slowdown), "above 0, at most 1e6");
    paces[straggler.rank.index()].slowdown *= straggler.slowdown;
  }
  const bool uneven = std::ranges::any_of(plan.segments, [](const Segment& segment) {
    return std::ranges::any_of(segment.instructions, [](const Instruction& i) { return share_of_rows(i) < 1; });
  });
  for (std::int32_t r = 0; uneven && !options.one_class_per_role && r < ranks.count(); ++r)
    paces[static_cast<std::size_t>(r)].fewer_rows = has_fewer_rows(plan, ranks, {r});
  return paces;
}

}  // namespace foreshard::player
