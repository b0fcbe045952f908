// What `simulate` plays: a plan with its cluster, and what its result is judged by. From a job or from a saved plan.
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

namespace foreshard {

struct Prepared {
  std::string model = {};
  Cluster cluster = {};
  Strategy strategy = {};  // with every default resolved
  Workload workload = {};
  Plan plan = {};
  std::optional<Infeasible> does_not_fit = {};  // its memory
  // What the framework that a job names would allocate; empty: our own executor, or a saved plan.
  std::optional<FrameworkAllocation> allocation = {};
  std::optional<MachineProfile> profile = {};  // whose costs the plan has
  // Says which of the options that were given change nothing; it lowers and plays other plans to know.
  std::function<void(const Plan& plan)> say_without_effect = {};
};

// A job that has no plan at all, with what was asked for.
struct Refused {
  std::string model = {}, cluster = {};
  Strategy strategy = {};
  Infeasible why = {};
};

// --plan FILE, or the options of a job. Throws Error. What is worth a word is said on `console`.
// Throws Error, too, for what is too large to be played so (cli/job/effort.h).
std::variant<Prepared, Refused> prepare(const Arguments& arguments, const Console& console, const EffortOptions& work);

// The strategy in the words of a headline: "tp 8", "pp 16", "1f1b", "bf16", and what is not the default.
std::vector<std::string> headline(const Strategy& strategy);

}  // namespace foreshard
