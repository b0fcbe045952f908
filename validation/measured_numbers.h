// Numbers in the cells of a table of measurements. Every column that holds a number has its range in one table, so that what is computed from
// the numbers of a row neither overflows nor takes for ever. Internal to validation/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace foreshard {

struct NumberColumn {
  const char* name = "";
  bool whole = true;  // no fraction
  double least = 1, most = 1;
};
// The range of a column; `column` must be one that holds a number.
const NumberColumn& number_column(const std::string& column);

// The number that `text` is, to its last letter: "6144", "0.5", "1e3". None: it is no number in the column's range.
std::optional<double> number_in(const std::string& text, const NumberColumn& column);
// "a whole number from 1 to 4096".
std::string range_text(const NumberColumn& column);

// The digits at the beginning of a text, at most 1,000,000,000: "26.02" -> 26, "layers" -> 0.
int leading_int(const std::string& text);

}  // namespace foreshard
