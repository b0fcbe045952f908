#include "cli/job/sound_plan.h"

#include "core/base/error.h"
#include "core/check/check_plan.h"

namespace foreshard {

std::string first_defect(const Plan& plan) {
  const std::vector<PlanDefect> defects = check_plan(plan, {.most_defects = 1});
  if (defects.empty()) return "";
  return defects[0].where + ": " + defects[0].what + " [" + defects[0].rule + "]";
}

void expect_sound(const Plan& plan, const std::string& file, const std::string& otherwise) {
  if (const std::string defect = first_defect(plan); !defect.empty())
    throw Error(file + ": " + defect + "; the plan is not sound" + otherwise);
}

}  // namespace foreshard
