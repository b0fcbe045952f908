// The text of --help, no wider than a terminal (kTextWidth).
#pragma once

#include <string>
#include <vector>

#include "cli/program/verb.h"
#include "report/words/text_table.h"

namespace foreshard {

std::string program_help(const std::vector<Verb>& verbs);
std::string verb_help(const Verb& verb);
// Every verb that begins with `word` ("show"), for "show --help".
std::string family_help(const std::string& word, const std::vector<Verb>& verbs);

std::string paragraph(const std::string& text);  // prose below a table: wrapped, indented by two spaces, further lines by four

}  // namespace foreshard
