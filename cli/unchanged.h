// Options that were given and change nothing: a person should not take the answer for one with them.
#pragma once

#include <map>
#include <string>

#include "cli/job.h"
#include "core/plan.h"

namespace foreshard {

// Where an option of the strategy matters, by its path: "cp above 1".
const std::map<std::string, std::string>& where_options_matter();

// Says of each option of the strategy that was given whether the plan is the same without it. Large jobs, and those whose
// recomputation is searched for, are not looked at.
// `played`: also where plans differ whose time and memory, played by stages, are equal.
void say_without_effect(const Arguments& arguments, const Console& console, const Job& job, const Plan& plan, bool played);
// The same of --set model.KEY and cluster.KEY, whose answers are compared: each is played once more, by stages.
void say_settings_without_effect(const Arguments& arguments, const Console& console, const Job& job, const Plan& plan);

}  // namespace foreshard
