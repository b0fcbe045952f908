// foreshard run in several processes: what a launcher says, and the options for it.
#pragma once

#include <memory>
#include <vector>

#include "cli/program/verb.h"
#include "core/plan/plan.h"
#include "exec/interpreter/execute.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

std::vector<VerbOption> process_options();
// The processes that a launcher started together with this one, connected; nothing when it is alone. `device`: the kind that the ranks run
// on, the same everywhere. Throws DeviceError when they do not come, or do not run the same.
std::unique_ptr<ProcessMesh> other_processes(const Arguments& arguments, const Plan& plan, const ExecuteOptions& options,
                                             const std::string& device, const Console& console);

// How many of the plan's ranks this machine runs, and on how many cores the system lets them; every process has to ask.
int ranks_of_this_machine(ProcessMesh* mesh, const Plan& plan);
int usable_cores();

}  // namespace foreshard
