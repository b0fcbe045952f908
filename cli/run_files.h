// The files of `foreshard run`: what is trained on, and checkpoints.
#pragma once

#include <memory>
#include <vector>

#include "cli/verb.h"
#include "exec/execute.h"

namespace foreshard {

// The options of the verb, and --data, --data-format, --save, --save-every, --resume.
std::vector<VerbOption> with_run_files(std::vector<VerbOption> options);

// Sets them in `options`, which knows the other processes; returns the samples that those point to. Throws Error.
std::unique_ptr<Samples> use_run_files(const Arguments& arguments, const Plan& plan, ExecuteOptions& options);

}  // namespace foreshard
