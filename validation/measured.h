// Published measurements: one CSV file per source, one row per measured quantity. Columns are told by the header, so files
// may have more columns and another order. The format is docs/validation.md's, shared by shipped files and a user's own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace foreshard {

// One row; cells by column name, spaces at both ends cut off.
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

// Columns that every file needs.
const std::vector<std::string>& measured_columns();

// RFC 4180: quotes around cells, doubled inside them. Throws Error for missing columns, rows of another length, a quote that
// never ends, a value that is neither a positive number nor OOM.
std::vector<MeasuredRow> parse_measured(const std::string& text, const std::string& file_name);
std::vector<MeasuredRow> load_measured(const std::string& path);

bool ran_out_of_memory(const MeasuredRow& row);  // measured_value OOM

}  // namespace foreshard
