// foreshard calibrate --collectives: what collectives take between the processes that a launcher started.
#pragma once

#include "cli/program/verb.h"

namespace foreshard {

ExitCode calibrate_collectives(const Arguments& arguments, const Console& console);

}  // namespace foreshard
