#include "strategy/cost/forwarded_rows.h"

#include <algorithm>
#include <map>

#include "strategy/cost/plan_parts.h"

namespace foreshard {

namespace {

// Inside nodes or between them: of all-to-alls among the ranks of an expert group that is cut into nodes.
std::optional<ExpertKind> level_of(const Plan& plan, const Instruction& run) {
  const auto* what = std::get_if<Collective>(&run.what);
  if (!what || what->kind != CollectiveKind::AllToAll) return {};
  const std::vector<AxisId>& over = plan.groups[what->group.index()].over;
  if (over.empty()) return {};
  const ExpertKind kind = plan.axes[over.front().index()].expert;
  const bool one = std::ranges::all_of(over, [&](AxisId axis) { return plan.axes[axis.index()].expert == kind; });
  return one && is_of_experts(plan.axes[over.front().index()]) ? std::optional(kind) : std::nullopt;
}

bool passes_on(const Instruction& run) {
  const auto* what = std::get_if<Compute>(&run.what);
  return what && is<ops::Dispatch, ops::Combine, ops::Encode, ops::Decode>(what->op);
}

}  // namespace

std::vector<int> forwarded_rows(const Plan& plan, const Role& role, const Segment& segment) {
  std::vector<int> forwards(segment.instructions.size(), -1);
  const bool nodes =
      std::ranges::any_of(role.axes, [&](AxisId axis) { return plan.axes[axis.index()].expert == ExpertKind::OuterExpert; });
  if (!nodes) return forwards;
  const auto sent = [&](int i) { return std::get<Collective>(segment.instructions[static_cast<std::size_t>(i)].what).bytes; };
  std::map<BlockPlace, int> arrived;  // the all-to-all that brought the rows of a block
  for (std::size_t i = 0; i < forwards.size(); ++i) {
    const Instruction& run = segment.instructions[i];
    int from = -1;  // of rows, choices and weights the rows are most
    for (const Use& use : run.reads)
      if (const auto known = arrived.find(place_of(use)); known != arrived.end())
        if (from < 0 || sent(from) < sent(known->second)) from = known->second;
    const auto level = level_of(plan, run);
    if (level && from >= 0 && level_of(plan, segment.instructions[static_cast<std::size_t>(from)]) != level) forwards[i] = from;
    if (level) from = static_cast<int>(i);
    if (!level && !passes_on(run)) from = -1;
    for (const Use& use : run.writes)
      if (from >= 0)
        arrived[place_of(use)] = from;
      else
        arrived.erase(place_of(use));
  }
  return forwards;
}

double still_to_send(double first, double second) {
  if (first <= 0 || second <= 0) return 1;
  return (std::max(second - first, 0.0) + std::min(first, second) / kForwardedChunks) / second;
}

}  // namespace foreshard
