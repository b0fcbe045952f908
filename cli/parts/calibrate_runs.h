// foreshard calibrate --runs: what measured training runs teach about a machine, as a profile. docs/learning.md.
#pragma once

#include "cli/program/verb.h"

namespace foreshard {

ExitCode calibrate_runs(const Arguments& arguments, const Console& console);

}  // namespace foreshard
