// The input of `simulate`, from a job or from a saved plan: the plan, its cluster, and the workload that its summary needs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "cli/job/effort.h"
#include "cli/program/verb.h"
#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "core/profile/machine_profile.h"
#include "core/strategy/strategy.h"
#include "report/summary/summarize.h"
#include "strategy/frameworks/framework_allocation.h"
#include "strategy/verdict/verdict.h"

namespace foreshard {

struct Prepared {
  std::string model = {};
  Cluster cluster = {};
  Strategy strategy = {};  // with every default resolved
  Workload workload = {};
  Plan plan = {};
  Verdict verdict = {};                      // whether it fits the memory
  std::vector<std::string> would_help = {};  // where it does not fit: changes with which it does
  // What the framework that the job names would allocate; empty for this program's own executor and for a saved plan.
  std::optional<FrameworkAllocation> allocation = {};
  std::optional<MachineProfile> profile = {};  // its costs are in the plan
  // Prints which of the given options have no effect. To find out, it lowers and replays further plans.
  std::function<void(const Plan& plan)> say_without_effect = {};
};

// A job that cannot be lowered, and the reason.
struct Refused {
  std::string model = {}, cluster = {};
  Strategy strategy = {};
  Infeasible why = {};
};

// Reads --plan FILE or the options of a job, and prints notes on `console`. Throws Error for wrong input, and for `work` that is too
// large (cli/job/effort.h).
std::variant<Prepared, Refused> prepare(const Arguments& arguments, const Console& console, const EffortOptions& work);

// The words of a headline: parallel degrees, schedule and precision ("tp 8", "pp 16", "1f1b", "bf16"), then all that is not the
// default.
std::vector<std::string> headline(const Strategy& strategy);

}  // namespace foreshard
