// Says in one sentence why the program ends, and with which exit code: the four kinds of errors of core/base/error.h, and what the language
// and its library throw (no memory, no thread).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cli/program/verb.h"

namespace foreshard {

// Call it while an exception is handled. Prints "foreshard: ..." on `err` and returns the exit code. `words`: the command line, which a report
// of a bug needs. Allocates nothing when memory has run out.
ExitCode tell_failure(const std::vector<std::string>& words, std::ostream& err);

// "internal error: WHAT; please report it with this command: COMMAND".
std::string bug_report(const std::string& what, const std::string& command);

// An exception that nobody catches (in a thread, in a destructor) ends the program with such a sentence, too, instead of a signal.
void end_uncaught_with_a_sentence();

}  // namespace foreshard
