// What a verb says beside its answer, on standard error.
#pragma once

#include <string>

#include "cli/job/job.h"
#include "cli/program/verb.h"

namespace foreshard {

// "foreshard: NOTE", or with --progress json the line {"note": "NOTE"}.
void say(const Arguments& arguments, const Console& console, const std::string& note);

// What was given or left out and decides otherwise than one may think: a long sequence that was not asked for (the model's maximum),
// an option that --set strategy. replaces, the number formats of a quantized model.
void say_of_job(const Arguments& arguments, const Job& job, const Console& console);

}  // namespace foreshard
