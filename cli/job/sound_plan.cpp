#include "cli/job/sound_plan.h"

#include "core/base/error.h"
#include "core/check/check_plan.h"

namespace foreshard {

void expect_sound(const Plan& plan, const std::string& file, const std::string& otherwise) {
  if (const std::string defect = first_defect(plan); !defect.empty())
    throw Error(file + ": " + defect + "; the plan is not sound" + otherwise);
}

}  // namespace foreshard
