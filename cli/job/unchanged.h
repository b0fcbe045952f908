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

// [path of a strategy option]: the condition under which the option has an effect, "cp above 1".
const std::map<std::string, std::string>& where_options_matter();

struct UnchangedOptions {
  bool played = false;                    // also report options that change the plan but not its simulated time or memory
  std::vector<std::string> skipped = {};  // paths of options that are not checked
  std::string where = "here";             // for the message: "changes nothing here"
};

// One sentence for each option of the strategy that the user gave and without which the plan is the same. Large jobs, and jobs
// whose recomputation is chosen by a search, are not checked.
std::vector<std::string> without_effect(const Arguments& arguments, const Job& job, const Plan& plan,
                                        const UnchangedOptions& options);
// The same for --set model.KEY and cluster.KEY: compares time (replayed by stages), memory and price without each of them.
std::vector<std::string> settings_without_effect(const Arguments& arguments, const Job& job, const Plan& plan,
                                                 const std::string& where = "here");

// Both checks for the strategy `found` by a search. Options in `skipped` are reported elsewhere.
std::vector<std::string> without_effect_on_found(const Arguments& arguments, Job job, const Strategy& found,
                                                 const std::vector<std::string>& skipped);
// Keeps in `common` the notes that are also in `more`; sets it to `more` where it has no value yet.
void keep_common(std::optional<std::vector<std::string>>& common, const std::vector<std::string>& more);
void say_all(const Arguments& arguments, const Console& console, const std::vector<std::string>& notes);

// Whether the command line gives the option: by its flag, by --set or by --fix.
bool given(const Arguments& arguments, const StrategyOption& option);
// The flags of those `paths` that --strategy FILE sets to a value other than the default and the command line does not set.
std::vector<std::string> set_by_file_only(const Arguments& arguments, const std::vector<std::string>& paths);

}  // namespace foreshard
