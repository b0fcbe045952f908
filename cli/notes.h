// What a verb says beside its answer, on standard error.
#pragma once

#include <string>

#include "cli/job.h"
#include "cli/verb.h"

namespace foreshard {

// "foreshard: NOTE", or with --progress json the line {"note": "NOTE"}.
void say(const Arguments& arguments, const Console& console, const std::string& note);

// Long sequences that nobody asked for: the model's maximum.
void say_default_sequence(const Arguments& arguments, const Job& job, const Console& console);

}  // namespace foreshard
