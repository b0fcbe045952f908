// Notes that a verb prints on standard error, separate from its answer on standard output.
#pragma once

#include <string>

#include "cli/job/job.h"
#include "cli/program/verb.h"

namespace foreshard {

// Prints "foreshard: NOTE", or with --progress json the line {"note": "NOTE"}.
void say(const Arguments& arguments, const Console& console, const std::string& note);

// Prints notes on what may surprise the user: without --seq a long sequence (the model's maximum) is used, --set strategy.* replaces
// an option, or the number formats of a quantized model are ignored.
void say_of_job(const Arguments& arguments, const Job& job, const Console& console);

}  // namespace foreshard
