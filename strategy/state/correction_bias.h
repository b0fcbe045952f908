// Correction biases of routers (Wang et al. 2024, arXiv:2408.15664; DeepSeek-V3, section 2.1.2) as part of a plan. Each rank has the biases
// of its stage's routers, and counts how many of its tokens choose each expert. At the end of a run the ranks of the stage sum their
// counts, and the biases are updated from them:
//
//   F0 (counts += loads)  F1 (counts += loads) ... | update | [all-reduce of the counts] -> balance_experts
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

// Gives every router of the plan a bias that changes by `speed` at the end of a run. To be called before memory is planned.
void add_correction_biases(Plan& plan, double speed);

}  // namespace foreshard
