#include "cli/table.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "cli/help.h"
#include "core/json.h"

namespace foreshard {

static bool is_whole_number(const std::string& text, std::int64_t& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size() && !text.empty();
}

static bool is_number(const std::string& text) {
  double ignored = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), ignored);
  return problem == std::errc() && end == text.data() + text.size();
}

static bool is_number_column(const Table& table, std::size_t column) {
  return !table.rows.empty() &&
         std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return is_number(row[column]); });
}

std::string table_text(const Table& table) {
  const std::size_t columns = table.head.size();
  std::vector<std::size_t> width(columns);
  std::vector<bool> right(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    width[c] = table.head[c].size();
    right[c] = is_number_column(table, c);
    for (const auto& row : table.rows) width[c] = std::max(width[c], row[c].size());
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string blanks(width[c] - std::min(width[c], cells[c].size()), ' ');
      if (c + 1 == columns && !right[c])
        text += wrapped(cells[c], text.size());
      else
        text += (right[c] ? blanks + cells[c] : cells[c] + blanks) + (c + 1 == columns ? "" : "  ");
    }
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = line(table.head);
  for (const auto& row : table.rows) text += line(row);
  return text;
}

std::string table_json(const Table& table) {
  std::vector<std::string> keys = table.head;
  for (std::string& key : keys)
    for (char& c : key) c = c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  JsonWriter json;
  json.begin_array();
  for (const auto& row : table.rows) {
    json.begin_object();
    for (std::size_t c = 0; c < keys.size(); ++c) {
      std::int64_t number = 0;
      if (is_whole_number(row[c], number))
        json.field(keys[c], number);
      else
        json.field(keys[c], row[c]);
    }
    json.end_object();
  }
  return json.end_array().text();
}

}  // namespace foreshard
