// The program that main calls: parses the command line, runs one verb, prints, and turns errors into exit codes.
#pragma once

#include <string>
#include <vector>

#include "cli/program/verb.h"

namespace foreshard {

// `arguments` without the program's name. Every error is caught here, once, and printed as one line.
ExitCode run_program(const std::vector<std::string>& arguments, const Console& console);

}  // namespace foreshard
