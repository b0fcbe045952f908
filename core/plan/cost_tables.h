// Looks up the cost table of a plan for the kind of device that a role runs on.
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

const CostTable* find_costs(const Plan& plan, const Role& role);  // null if the plan has no such table
const CostTable& costs_of(const Plan& plan, const Role& role);    // the table has to exist

}  // namespace foreshard
