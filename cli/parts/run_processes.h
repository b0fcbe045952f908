// foreshard run in several processes: its options, and the connection to the other processes that a launcher started.
#pragma once

#include <memory>
#include <vector>

#include "cli/program/verb.h"
#include "core/plan/plan.h"
#include "exec/interpreter/execute.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

std::vector<VerbOption> process_options();
// Connects the processes that a launcher started together with this one; null when there is one process only. `device`: the kind of
// device that the ranks run on, which must be the same in all processes. Throws DeviceError when a process does not connect, or when
// its plan or options differ.
std::unique_ptr<ProcessMesh> other_processes(const Arguments& arguments, const Plan& plan, const ExecuteOptions& options,
                                             const std::string& device, const Console& console);

// How many of the plan's ranks run on this machine. With several processes all of them must call it.
int ranks_of_this_machine(ProcessMesh* mesh, const Plan& plan);
int usable_cores();  // cores that the system lets this process use

}  // namespace foreshard
