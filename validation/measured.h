// Reads published measurements: one CSV file per source, one row per measured quantity. Columns are found by their names in the
// header line, so files may have further columns and any order. docs/validation.md describes the format, which is the same for
// shipped files and a user's own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace foreshard {

// One row: its cells by column name, without spaces at their ends.
struct MeasuredRow {
  std::string file = {};
  int line = 0;
  std::map<std::string, std::string> cells = {};

  const std::string& text(const std::string& column) const;                 // "" when the column is absent
  bool unknown(const std::string& column) const;                            // empty, "unknown..." or "n/a..."
  bool mentions(const std::string& column, const std::string& word) const;  // ignoring case
  // The number in a cell of a column that holds numbers; none: the cell is unknown(). Throws Error with the row, the column, what was found and
  // the range of the column where the cell is anything else.
  std::optional<double> number(const std::string& column) const;
  std::optional<std::int64_t> whole(const std::string& column) const;  // of a column of whole numbers
  std::string where() const { return file + ":" + std::to_string(line); }
  bool operator==(const MeasuredRow&) const = default;
};

// Columns that every file must have.
const std::vector<std::string>& measured_columns();

// Parses CSV as in RFC 4180: cells may be quoted, with quotes doubled inside. Throws Error for a missing column, a row with
// another number of cells than the header, or a quote that never ends.
std::vector<MeasuredRow> parse_measured(const std::string& text, const std::string& file_name);
std::vector<MeasuredRow> load_measured(const std::string& path);

bool ran_out_of_memory(const MeasuredRow& row);  // measured_value is "OOM"
void expect_measured(const MeasuredRow& row);    // throws Error if measured_value is neither a positive number nor OOM

}  // namespace foreshard
