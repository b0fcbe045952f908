#include "strategy/learning/part_shares.h"

#include <cmath>
#include <map>
#include <set>

#include "strategy/cost/plan_parts.h"
#include "strategy/estimate/estimate.h"

namespace foreshard {

namespace {

constexpr double kLonger = 1.02;

struct Place {
  std::size_t segment = 0, instruction = 0;
};

// The instructions of each shape. A segment that several roles run counts for the first of them, as its costs do.
std::map<PartShape, std::vector<Place>> places_of(const Plan& plan, const FrameworkPreset& preset) {
  const PartShapes shapes(plan, preset);
  std::map<PartShape, std::vector<Place>> places;
  std::set<SegmentId> seen;
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(plan.roles.size()); ++r) {
    const Role& role = plan.roles[RoleId{r}.index()];
    for (const Action& action : role.actions) {
      if (!seen.insert(action.segment).second) continue;
      const std::vector<Instruction>& runs = plan.segments[action.segment.index()].instructions;
      for (std::size_t i = 0; i < runs.size(); ++i)
        if (const auto part = part_of(plan, role, runs[i]))
          places[shapes.of({r}, *part, runs[i])].push_back({action.segment.index(), i});
    }
  }
  return places;
}

}  // namespace

std::vector<PartShare> part_shares(Lowered lowered, const Cluster& cluster, const FrameworkPreset& preset, int microbatches,
                                   Seconds outside) {
  const double whole = refine(lowered, cluster, microbatches).time.value + outside.value;
  const std::vector<CostTable> costs = lowered.plan.costs;
  std::vector<PartShare> shares;
  for (const auto& [shape, places] : places_of(lowered.plan, preset)) {
    for (CostTable& table : lowered.plan.costs)
      for (const Place& at : places) {
        Cost& cost = table.by_segment[at.segment][at.instruction];
        cost = scaled(cost, kLonger);
      }
    const double longer = refine(lowered, cluster, microbatches).time.value + outside.value;
    shares.emplace_back(shape, std::log(longer / whole) / std::log(kLonger));
    lowered.plan.costs = costs;
  }
  return shares;
}

}  // namespace foreshard
