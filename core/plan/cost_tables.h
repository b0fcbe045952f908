// The costs of a plan by the kind of device that a role runs on.
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

const CostTable* find_costs(const Plan& plan, const Role& role);  // null: the plan has none
const CostTable& costs_of(const Plan& plan, const Role& role);    // there are some

}  // namespace foreshard
