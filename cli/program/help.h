// The text of --help, at most 100 columns wide.
#pragma once

#include <string>
#include <vector>

#include "cli/program/verb.h"

namespace foreshard {

inline constexpr std::size_t kHelpWidth = 100;

std::string program_help(const std::vector<Verb>& verbs);
std::string verb_help(const Verb& verb);
// Every verb that begins with `word` ("show"), for "show --help".
std::string family_help(const std::string& word, const std::vector<Verb>& verbs);

// `text` in lines of at most `width`; every line but the first is indented. A longer word stands on a line of its own.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width = kHelpWidth);

}  // namespace foreshard
