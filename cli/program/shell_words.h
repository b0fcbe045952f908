// Command lines as a person pastes them into a shell.
#pragma once

#include <string>
#include <vector>

#include "cli/program/verb.h"

namespace foreshard {

// The words with blanks between them; in quotes where a shell would read them otherwise.
std::string shell_line(const std::vector<std::string>& words);
// "foreshard VERB" with the arguments, options in the order of the verb's table.
std::string shell_line(const std::string& verb, const std::vector<VerbOption>& options, const Arguments& arguments);

}  // namespace foreshard
