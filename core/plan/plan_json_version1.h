// What plan files of version 1 said by names: read once here, kinds and indices afterwards.
#pragma once

#include <vector>

#include "core/json/json.h"
#include "core/plan/plan.h"

namespace foreshard::version1 {

// An axis was what its name begins with: tp, cp, dp_outer, dp. There were no experts.
Axis read_axis(const JsonReader& json);

// The names of all axes and "role", once each.
std::vector<AxisId> read_order(const JsonReader& json, const std::vector<Axis>& axes);

}  // namespace foreshard::version1
