#include "core/plan/cost_tables.h"

#include <algorithm>

#include "core/base/error.h"

namespace foreshard {

const CostTable* find_costs(const Plan& plan, const Role& role) {
  const auto found = std::ranges::find(plan.costs, role.device_kind, &CostTable::device_kind);
  return found == plan.costs.end() ? nullptr : &*found;
}

const CostTable& costs_of(const Plan& plan, const Role& role) {
  const CostTable* costs = find_costs(plan, role);
  FS_ASSERT(costs != nullptr);
  return *costs;
}

}  // namespace foreshard
