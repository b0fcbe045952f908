#include "cli/program/table.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

#include "cli/program/help.h"
#include "core/json/json.h"
#include "report/words/text_table.h"

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
  const std::size_t last = table.head.size() - 1;
  TextTable text;
  std::size_t before_last = 0;  // where the last column begins
  for (std::size_t c = 0; c <= last; ++c) {
    text.columns.push_back({table.head[c], is_number_column(table, c) ? Align::Right : Align::Left});
    int width = width_of(table.head[c]);
    for (const auto& row : table.rows) width = std::max(width, width_of(row[c]));
    if (c < last) before_last += static_cast<std::size_t>(width) + 2;
  }
  for (const auto& row : table.rows) {
    std::vector<std::string> cells = row;
    for (std::string& cell : cells)
      if (std::int64_t number = 0; is_whole_number(cell, number)) cell = count_text(number);
    std::istringstream lines(
        wrapped(cells[last], 0, std::max<std::size_t>(30, kTextWidth - std::min(before_last, kTextWidth))));
    cells[last].clear();
    std::getline(lines, cells[last]);
    text.rows.push_back(cells);
    for (std::string line; std::getline(lines, line);) {
      cells.assign(last, "");
      cells.push_back(line);
      text.rows.push_back(cells);
    }
  }
  return text.text(false, 0);
}

void table_json(JsonWriter& json, const Table& table) {
  std::vector<std::string> keys = table.head;
  for (std::string& key : keys)
    for (char& c : key) c = c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  json.begin_array();
  std::vector<bool> whole(keys.size());
  std::int64_t number = 0;
  for (std::size_t c = 0; c < keys.size(); ++c)
    whole[c] =
        std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return is_whole_number(row[c], number); });
  for (const auto& row : table.rows) {
    json.begin_object();
    for (std::size_t c = 0; c < keys.size(); ++c) {
      if (whole[c] && is_whole_number(row[c], number))
        json.field(keys[c], number);
      else
        json.field(keys[c], row[c]);
    }
    json.end_object();
  }
  json.end_array();
}

std::string table_json(const Table& table) {
  JsonWriter json;
  table_json(json, table);
  return json.text();
}

}  // namespace foreshard
