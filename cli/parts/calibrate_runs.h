// foreshard calibrate --runs: learns costs from measured training runs and writes them as a profile. docs/learning.md.
#pragma once

#include "cli/program/verb.h"

namespace foreshard {

ExitCode calibrate_runs(const Arguments& arguments, const Console& console);

}  // namespace foreshard
