// Reads published measurements: one CSV file per source, one row per measured quantity. Columns are found by their names in the
// header line, so files may have further columns and any order. docs/validation.md describes the format, which is the same for
// shipped files and a user's own.
#pragma once

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
  std::optional<double> number(const std::string& column) const;            // the number that the cell begins with
  std::string where() const { return file + ":" + std::to_string(line); }
  bool operator==(const MeasuredRow&) const = default;
};

// Columns that every file must have.
const std::vector<std::string>& measured_columns();

// Parses CSV as in RFC 4180: cells may be quoted, with quotes doubled inside. Throws Error for a missing column, a row with
// another number of cells than the header, a quote that never ends, or a measured value that is neither a positive number nor OOM.
std::vector<MeasuredRow> parse_measured(const std::string& text, const std::string& file_name);
std::vector<MeasuredRow> load_measured(const std::string& path);

bool ran_out_of_memory(const MeasuredRow& row);  // measured_value is "OOM"

}  // namespace foreshard
