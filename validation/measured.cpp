#include "validation/measured.h"

#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "core/json/json.h"
#include "validation/measured_numbers.h"

namespace foreshard {

static std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

static std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

const std::string& MeasuredRow::text(const std::string& column) const {
  static const std::string none;
  const auto cell = cells.find(column);
  return cell == cells.end() ? none : cell->second;
}

bool MeasuredRow::unknown(const std::string& column) const {
  const std::string& cell = text(column);
  return cell.empty() || cell.starts_with("unknown") || cell.starts_with("n/a");
}

bool MeasuredRow::mentions(const std::string& column, const std::string& word) const {
  return lower_case(text(column)).find(word) != std::string::npos;
}

std::optional<double> MeasuredRow::number(const std::string& column) const {
  if (unknown(column)) return {};
  const NumberColumn& range = number_column(column);
  const std::optional<double> value = number_in(text(column), range);
  if (!value) throw Error(where(), column, "\"" + text(column) + "\"", range_text(range));
  return value;
}

std::optional<std::int64_t> MeasuredRow::whole(const std::string& column) const {
  FS_ASSERT(number_column(column).whole);
  const std::optional<double> value = number(column);
  return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

const std::vector<std::string>& measured_columns() {
  static const std::vector<std::string> columns = {
      "source",        "row_id",   "model_name", "layers",      "hidden",       "ffn_hidden",
      "heads",         "kv_heads", "seq_len",    "vocab",       "precision",    "gpu",
      "num_gpus",      "tp",       "pp",         "micro_batch", "global_batch", "measured_quantity",
      "measured_value"};
  return columns;
}

namespace {

class CsvReader {
 public:
  CsvReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  bool more() const { return at_ < text_.size(); }
  int line() const { return line_; }

  std::vector<std::string> record() {
    std::vector<std::string> cells;
    for (;;) {
      cells.push_back(trimmed(cell()));
      if (!more()) return cells;
      if (text_[at_++] == '\n') {
        ++line_;
        return cells;
      }
    }
  }

 private:
  std::string cell() {
    std::string value;
    if (more() && text_[at_] == '"') return quoted();
    while (more() && text_[at_] != ',' && text_[at_] != '\n') value += text_[at_++];
    return value;
  }

  std::string quoted() {
    const int begin = line_;
    std::string value;
    for (++at_; more(); ++at_) {
      if (text_[at_] == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
        ++at_;
      }
      line_ += text_[at_] == '\n' ? 1 : 0;
      value += text_[at_];
    }
    if (!more()) throw Error(file_ + ":" + std::to_string(begin), "quoted cell", "the end of the file", "a closing quote");
    ++at_;
    while (more() && text_[at_] != ',' && text_[at_] != '\n') ++at_;
    return value;
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

bool ran_out_of_memory(const MeasuredRow& row) { return lower_case(row.text("measured_value")) == "oom"; }

void expect_measured(const MeasuredRow& row) {
  constexpr const char* kColumn = "measured_value";
  if (!ran_out_of_memory(row) && !number_in(row.text(kColumn), number_column(kColumn)))
    throw Error(row.where(), kColumn, "\"" + row.text(kColumn) + "\"", range_text(number_column(kColumn)) + ", or OOM");
}

std::vector<MeasuredRow> parse_measured(const std::string& text, const std::string& file_name) {
  CsvReader reader(text, file_name);
  if (!reader.more()) throw Error(file_name, "header", "an empty file", "column names");
  const std::vector<std::string> header = reader.record();
  for (const std::string& column : measured_columns())
    if (std::find(header.begin(), header.end(), column) == header.end())
      throw Error(file_name, "header", "no column \"" + column + "\"", "the columns of published measurements");
  std::vector<MeasuredRow> rows;
  while (reader.more()) {
    MeasuredRow row = {.file = file_name, .line = reader.line()};
    const std::vector<std::string> cells = reader.record();
    if (cells.size() == 1 && cells.front().empty()) continue;
    if (cells.size() != header.size())
      throw Error(row.where(), "row", std::to_string(cells.size()) + " cells",
                  std::to_string(header.size()) + " as the header has");
    for (std::size_t c = 0; c < cells.size(); ++c) row.cells[header[c]] = cells[c];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<MeasuredRow> load_measured(const std::string& path) { return parse_measured(read_file(path), path); }

}  // namespace foreshard
