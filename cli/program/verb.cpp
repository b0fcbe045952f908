#include "cli/program/verb.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/base/error.h"

namespace foreshard {

std::string Arguments::text(const std::string& option, const std::string& otherwise) const {
  const auto found = values_.find(option);
  return found == values_.end() || found->second.empty() ? otherwise : found->second.back();
}

std::vector<std::string> Arguments::all(const std::string& option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

Arguments Arguments::with(const std::string& option, const std::string& value) const {
  Arguments changed = *this;
  changed.values_[option] = {value};
  return changed;
}

Arguments Arguments::adding(const std::string& option, const std::string& value) const {
  Arguments changed = *this;
  changed.values_[option].push_back(value);
  return changed;
}

Arguments Arguments::without(const std::string& option, const std::string& value) const {
  Arguments changed = *this;
  std::erase(changed.values_[option], value);
  if (changed.values_[option].empty()) changed.values_.erase(option);
  return changed;
}

std::int64_t Arguments::integer(const std::string& option, std::int64_t otherwise, std::int64_t least,
                                std::int64_t most) const {
  if (!has(option)) return otherwise;
  const std::string value = text(option);
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem != std::errc() || end != value.data() + value.size() || number < least || number > most)
    throw Error(kCommandLine, option, "\"" + value + "\"",
                "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return number;
}

double Arguments::number(const std::string& option, double otherwise, double least, double most) const {
  if (!has(option)) return otherwise;
  const std::string value = text(option);
  double number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem != std::errc() || end != value.data() + value.size() || !(number >= least && number <= most))
    throw Error(kCommandLine, option, "\"" + value + "\"", "a number from " + plain(least) + " to " + plain(most));
  return number;
}

std::string Arguments::choice(const std::string& option, const std::string& otherwise,
                              const std::vector<std::string>& known) const {
  if (!has(option)) return otherwise;
  std::string value = text(option);
  if (std::find(known.begin(), known.end(), value) != known.end()) return value;
  const std::string nearest = nearest_name(value, known);
  throw Error(kCommandLine, option, "\"" + value + "\"",
              "one of " + joined(known) + (nearest.empty() ? "" : " (nearest: " + nearest + ")"));
}

std::string plain(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.6g", value);
  return digits;
}

std::string percent(double fraction) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.2f", 100 * fraction);
  return digits;
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

}  // namespace foreshard
