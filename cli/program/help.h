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

std::string paragraph(const std::string& text);  // a line of prose below a table: two spaces, four where it goes on

}  // namespace foreshard
