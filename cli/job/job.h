// The job that a command line describes: which model, on which cluster, trained how.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/program/verb.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/profile/machine_profile.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"

namespace foreshard {

struct Job {
  Model model = {};
  Cluster cluster = {};
  Strategy strategy = {};
  std::optional<MachineProfile> profile = {};
  std::vector<std::string> settings = {};  // values of --set that change model or cluster
  const MachineProfile* measured() const { return profile ? &*profile : nullptr; }
  bool operator==(const Job&) const = default;
};

// The options that describe a job: --model, --cluster, --gpus, --nodes, --strategy, --set, and all of the strategy, in groups.
std::vector<VerbOption> job_options();
// Applies the files first, then the strategy's options in the order of their table, then --set in the order given; later ones win.
// Throws Error.
Job read_job(const Arguments& arguments);
// The same; stages of equal degrees are said by dp, tp, pp and layer split (strategy/resolve/resolve.h): one strategy has one plan.
Job read_job_of_a_plan(const Arguments& arguments);
// Reads a model for verbs without a cluster: the model `name`, changed by the --set options. Throws Error for a --set of anything
// else.
Model read_model_alone(const std::string& name, const Arguments& arguments);

// For a job that needs too much memory: changes of its options with which it fits, or the search command to try.
std::vector<std::string> would_help(const Job& job);
// The reason and the changes that would help, nearest first, as JSON.
std::string infeasible_json(const Infeasible& infeasible);
// Prints the same on standard error: one line for the reason, one per change.
void complain(const Infeasible& infeasible, const Console& console);
// Ends a verb whose job is infeasible: prints the reason, with --json as JSON, and returns the exit code.
ExitCode refuse(const Infeasible& infeasible, const Arguments& arguments, const Console& console);

}  // namespace foreshard
