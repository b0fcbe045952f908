// The whole program behind main: parse, call one verb, print, turn errors into exit codes.
#pragma once

#include <string>
#include <vector>

#include "cli/program/verb.h"

namespace foreshard {

// `arguments` without the program's name. Every error is caught here, once, and printed as one line.
ExitCode run_program(const std::vector<std::string>& arguments, const Console& console);

}  // namespace foreshard
