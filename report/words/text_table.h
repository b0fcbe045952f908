// A text table with aligned columns, and the formats of the numbers in its cells. Widths count characters, not bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/count_text.h"
#include "core/base/units.h"

namespace foreshard {

enum class Align : std::uint8_t { Left, Right };

struct TextTable {
  struct Column {
    std::string header = {};
    Align align = Align::Right;
  };
  std::vector<Column> columns = {};
  std::vector<std::vector<std::string>> rows = {};  // a row may be shorter than the header

  // Header, rule, rows; every line ends with a newline and is indented by `indent`.
  std::string text(bool unicode, int indent = 2) const;
};

int width_of(std::string_view text);  // characters of a UTF-8 text
std::string pad(const std::string& text, int width, Align align);

inline constexpr std::size_t kTextWidth = 80;  // of a terminal
// Breaks `text` into lines of at most `width` characters; every line but the first is indented by `indent`. A word longer than that
// gets a line of its own; no line break separates a number from its unit.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width = kTextWidth);

std::string in_time(Seconds time);                       // "41.32 s", "9.81 ms", "3.20 µs", "-" for 0
std::string in_short_time(Seconds time);                 // three digits: "41.3 s", "9.81 ms", "320 µs"
std::string in_time_range(Seconds low, Seconds high);    // "18.5-24.6 s", "980 ms - 1.02 s"
std::string in_percent(double share, int decimals = 1);  // "11.3 %"
std::string per_cent(double share);                      // "11.3", under a heading with %
std::string in_gib_text(Bytes bytes);                    // "12.34"
std::string with_commas(double number);                  // "76,132"; below 100 with two decimals
std::string in_flops(Flops flops);                       // "231.4 PFLOP"
// A bar that fills `share` (0 to 1) of `columns` characters, to an eighth of a character; without Unicode of "#".
std::string bar(double share, int columns, bool unicode);

}  // namespace foreshard
