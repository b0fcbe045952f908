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
  std::vector<std::string> settings = {};  // --set of model and cluster
  const MachineProfile* measured() const { return profile ? &*profile : nullptr; }
  bool operator==(const Job&) const = default;
};

// --model, --cluster, --gpus, --nodes, --strategy, --set and every option of the strategy table, by group.
std::vector<VerbOption> job_options();
// Files first, then the strategy's options in the order of the table, then --set in the order given. Throws Error.
Job read_job(const Arguments& arguments);
// The model of that name with the --set options, which must all be of the model.
Model read_model_alone(const std::string& name, const Arguments& arguments);

// What would make room for a job that needs too much memory: changes of its options that fit, or where to look.
std::vector<std::string> would_help(const Job& job);
// A job that cannot be: one line why, then what would help, nearest first.
std::string infeasible_json(const Infeasible& infeasible);
void complain(const Infeasible& infeasible, const Console& console);
// Prints the reason, as JSON with --json: the end of a verb that cannot go on.
ExitCode refuse(const Infeasible& infeasible, const Arguments& arguments, const Console& console);

}  // namespace foreshard
