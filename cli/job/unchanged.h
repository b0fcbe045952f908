// Finds options that were given but do not change the answer, so that the user is told.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/job/job.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy_options.h"

namespace foreshard {

// Where an option of the strategy matters, by its path: "cp above 1".
const std::map<std::string, std::string>& where_options_matter();

struct UnchangedOptions {
  bool played = false;                    // also where plans differ whose time and memory, played by stages, are equal
  std::vector<std::string> skipped = {};  // paths that are not looked at
  std::string where = "here";
};

// A sentence for each option of the strategy that was given and without which the plan is the same. Large jobs, and those whose
// recomputation is searched for, are not looked at.
std::vector<std::string> without_effect(const Arguments& arguments, const Job& job, const Plan& plan,
                                        const UnchangedOptions& options);
// The same of --set model.KEY and cluster.KEY, whose answers are compared: each is played once more, by stages.
std::vector<std::string> settings_without_effect(const Arguments& arguments, const Job& job, const Plan& plan,
                                                 const std::string& where = "here");

// Both of a strategy that was found; the options of `skipped` are told about elsewhere.
std::vector<std::string> without_effect_on_found(const Arguments& arguments, Job job, const Strategy& found,
                                                 const std::vector<std::string>& skipped);
// Those that are in both; all of `more` where `common` has no value yet.
void keep_common(std::optional<std::vector<std::string>>& common, const std::vector<std::string>& more);
void say_all(const Arguments& arguments, const Console& console, const std::vector<std::string>& notes);

// Whether the flag of the option, a --set or a --fix of it is there.
bool given(const Arguments& arguments, const StrategyOption& option);
// The flags of those of `paths` that --strategy FILE sets to other than the default and nothing on the command line sets.
std::vector<std::string> set_by_file_only(const Arguments& arguments, const std::vector<std::string>& paths);

}  // namespace foreshard
