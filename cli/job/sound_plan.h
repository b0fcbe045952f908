// A plan file that check_plan refuses is neither simulated nor run.
#pragma once

#include <string>

#include "core/plan/plan.h"

namespace foreshard {

// Throws Error with the file and the first defect. `otherwise`: what the user can do all the same, after "the plan is not sound".
void expect_sound(const Plan& plan, const std::string& file, const std::string& otherwise = "");

}  // namespace foreshard
