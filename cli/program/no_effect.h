// Refuses options that have no effect without another option, because the user who gives them expects an effect.
#pragma once

#include <string>
#include <vector>

#include "cli/program/verb.h"

namespace foreshard {

// Called when `options` have no effect: throws Error when one of them is given. `needed`: what the option requires, for the message:
// "--time emulated", "no --runs".
void refuse_without(const Arguments& arguments, const std::string& needed, const std::vector<std::string>& options);

// Throws Error when more than one of `formats` is given, because a verb prints its answer in one format.
void expect_one_format(const Arguments& arguments, const std::vector<std::string>& formats);

}  // namespace foreshard
