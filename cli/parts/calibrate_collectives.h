// foreshard calibrate --collectives: measures the times of collectives between the processes that a launcher started.
#pragma once

#include "cli/program/verb.h"

namespace foreshard {

ExitCode calibrate_collectives(const Arguments& arguments, const Console& console);

}  // namespace foreshard
