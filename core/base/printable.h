// Makes untrusted text (names in files, words of a command line) safe to print on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace foreshard {

// The text with control characters escaped ("\x1b"), U+0080 to U+009F in UTF-8 included. A text longer than `most` bytes is cut to `most`
// bytes first and ends in "...".
std::string printable(std::string_view text, std::size_t most = std::string_view::npos);
// The same without a limit of length; line breaks and tabs stay.
std::string printable_lines(std::string_view text);

}  // namespace foreshard
