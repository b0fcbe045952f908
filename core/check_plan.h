// check_plan: an independent, dull validator of a Plan (design, section 3). It shares no code with `lower`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/plan.h"

namespace foreshard {

struct PlanDefect {
  std::string rule = {};   // "exchange-mismatch", "wait-without-record", "use-outside-life", "shared-bytes-unordered", ...
  std::string where = {};  // role, action, instruction
  std::string what = {};   // one sentence
  bool operator==(const PlanDefect&) const = default;
};

struct CheckPlanOptions {
  std::map<std::string, Bytes> capacity = {};  // device kind -> device memory; none: not checked
  Bytes host_capacity = {};                    // per node; 0: not checked
  int ranks_per_node = 0;
  bool stale_weights_allowed = false;          // PipeMare
  int most_defects = 20;
};

// Empty: the plan is sound. Works per role and symmetric coordinates, so its time does not grow with the data-parallel size.
std::vector<PlanDefect> check_plan(const Plan& plan, const CheckPlanOptions& options = {});

}  // namespace foreshard
