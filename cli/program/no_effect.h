// Options that do nothing without another one are refused: whoever gives them expects something.
#pragma once

#include <string>
#include <vector>

#include "cli/program/verb.h"

namespace foreshard {

// Throws Error when one of `options` is given. `needed`: what it wants, "--time emulated"; or "no --runs".
void refuse_without(const Arguments& arguments, const std::string& needed, const std::vector<std::string>& options);

// Throws Error when more than one of `formats` is given: one answer is printed.
void expect_one_format(const Arguments& arguments, const std::vector<std::string>& formats);

}  // namespace foreshard
