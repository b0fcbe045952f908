// A plan file that check_plan refuses is neither simulated nor run.
#pragma once

#include <string>

#include "core/plan/plan.h"

namespace foreshard {

// The first defect in the words of `foreshard check-plan`: "role 0 (stage 0), action 3: reads ... [rule]"; empty if the plan is sound.
std::string first_defect(const Plan& plan);

// Throws Error with the file and the first defect. `otherwise`: what the user can do all the same, after "the plan is not sound".
void expect_sound(const Plan& plan, const std::string& file, const std::string& otherwise = "");

}  // namespace foreshard
