// Text from outside (names in files, words of a command line) as it may stand on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace foreshard {

// Control characters as \x1b, those of two bytes in UTF-8 too; longer than `most` bytes: cut, with "...".
std::string printable(std::string_view text, std::size_t most = std::string_view::npos);
// The same, but lines and tabs stay.
std::string printable_lines(std::string_view text);

}  // namespace foreshard
