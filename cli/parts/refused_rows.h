// Rows of measurements that could not be predicted although a person may expect it: a bad cell, or a bug of ours.
#pragma once

#include <vector>

#include "cli/program/verb.h"
#include "validation/learned_runs.h"

namespace foreshard {

// Tells the first few of these rows on standard error, a bug with the command that shows it, and how many there are. Returns ExitCode::Bug if
// a row met a bug, WrongInput if one has a bad cell, else Ok. `runs`: also those of which the shares could not be found.
ExitCode tell_refused_rows(const std::vector<Asked>& asked, const Console& console, const std::vector<RunRow>& runs = {});

}  // namespace foreshard
