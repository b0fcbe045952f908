#include "report/words/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <sstream>

namespace foreshard {

int width_of(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string pad(const std::string& text, int width, Align align) {
  const std::string space(static_cast<std::size_t>(std::max(width - width_of(text), 0)), ' ');
  return align == Align::Left ? text + space : space + text;
}

std::string TextTable::text(bool unicode, int indent) const {
  std::vector<int> widths;
  for (const Column& column : columns) widths.push_back(width_of(column.header));
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  std::string out;
  const auto line = [&](auto&& cell) {
    std::string text(static_cast<std::size_t>(indent), ' ');
    for (std::size_t c = 0; c < columns.size(); ++c) text += (c > 0 ? "  " : "") + pad(cell(c), widths[c], columns[c].align);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line([&](std::size_t c) { return columns[c].header; });
  line([&](std::size_t c) {
    std::string rule;
    for (int i = 0; i < widths[c]; ++i) rule += unicode ? "─" : "-";
    return rule;
  });
  for (const auto& row : rows) line([&](std::size_t c) { return c < row.size() ? row[c] : std::string(); });
  return out;
}

namespace {

bool is_unit(std::string word) {
  while (!word.empty() && std::string_view(".,;:()").find(word.back()) != std::string_view::npos) word.pop_back();
  constexpr std::array<std::string_view, 9> units = {"%", "s", "ms", "µs", "GiB", "MiB", "GB/s", "GPUs", "GPU"};
  return std::ranges::find(units, word) != units.end();
}

std::vector<std::string> words_and_units(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream all(text);
  for (std::string word; all >> word;) {
    const bool number = !words.empty() && std::isdigit(static_cast<unsigned char>(words.back().back())) != 0;
    if (number && is_unit(word))
      words.back() += " " + word;
    else
      words.push_back(word);
  }
  return words;
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  for (const std::string& word : words_and_units(text)) {
    const auto length = static_cast<std::size_t>(width_of(word));
    if (!out.empty() && column + 1 + length > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += word;
    column += length;
  }
  return out;
}

std::string in_time(Seconds time) {
  const double s = time.value;
  if (s == 0) return "-";
  if (std::abs(s) >= 1e4) return count_text(std::llrint(s)) + " s";
  if (std::abs(s) >= 0.9995) return fmt::format("{:.2f} s", s);
  if (std::abs(s) >= 0.9995e-3) return fmt::format("{:.2f} ms", s * 1e3);
  return fmt::format("{:.2f} µs", s * 1e6);
}

std::string in_short_time(Seconds time) {
  if (time.value == 0) return "-";
  constexpr std::array<const char*, 4> units = {"s", "ms", "µs", "ns"};
  double value = std::abs(time.value);
  std::size_t unit = 0;
  for (; value < 0.9995 && unit + 1 < units.size(); ++unit) value *= 1000;
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{}{:.{}f} {}", time.value < 0 ? "-" : "", value, decimals, units[unit]);
}

std::string in_time_range(Seconds low, Seconds high) {
  const std::string from = in_short_time(low), to = in_short_time(high);
  const std::size_t unit = from.rfind(' ');
  if (unit == std::string::npos || !to.ends_with(from.substr(unit))) return from + " - " + to;
  return from.substr(0, unit) + "-" + to;
}

std::string in_percent(double share, int decimals) { return fmt::format("{:.{}f} %", share * 100, decimals); }

std::string per_cent(double share) { return fmt::format("{:.1f}", share * 100); }

std::string in_gib_text(Bytes bytes) { return fmt::format("{:.2f}", in_gib(bytes)); }

std::string with_commas(double number) {
  if (std::abs(number) < 100) return fmt::format("{:.2f}", number);
  if (std::abs(number) < 1e18) return count_text(std::llrint(number));
  return fmt::format("{:.3g}", number);
}

std::string in_flops(Flops flops) {
  constexpr std::array<const char*, 8> units = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"};
  double value = flops.value;
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1000;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string bar(double share, int columns, bool unicode) {
  constexpr std::array<const char*, 8> eighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double length = std::clamp(share, 0.0, 1.0) * columns;
  std::string out;
  if (!unicode) return std::string(static_cast<std::size_t>(std::lround(length)), '#');
  const auto filled = static_cast<int>(std::lround(length * 8));
  for (int i = 0; i < filled / 8; ++i) out += "█";
  return out + eighths[static_cast<std::size_t>(filled % 8)];
}

}  // namespace foreshard
