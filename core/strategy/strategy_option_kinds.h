// The kinds of entries that the table in strategy_options.cpp is made of. Each takes the entry's words and adds type,
// values, get and set; every set throws Error(where, path, found, expected).
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/strategy/strategy_options.h"

namespace foreshard::option_kinds {

std::string shown(const std::string& value);                                          // quoted, or "nothing"
std::string one_of(const std::vector<std::string>& words, const std::string& found);  // "one of a, b (nearest: ...)"

// From `least` up to but not including `below`; "6%" is 0.06 where `percent`.
StrategyOption number(double Strategy::*field, double least, double below, bool percent, StrategyOption option);
// The same for a field that may be empty: "auto".
StrategyOption optional_number(std::optional<double> Strategy::*field, double least, double below, bool percent,
                               StrategyOption option);
StrategyOption flag(bool Strategy::*field, StrategyOption option);
StrategyOption layer_split(StrategyOption option);
StrategyOption stages(StrategyOption option);
StrategyOption placement(StrategyOption option);
StrategyOption recompute(StrategyOption option);
StrategyOption overlap(StrategyOption option);
StrategyOption bucket(StrategyOption option);
StrategyOption framework_memory(StrategyOption option);
StrategyOption framework(StrategyOption option);

template <class Number>
std::optional<Number> parse(const std::string& text) {
  Number number = {};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// From `least` to `most`.
template <class Field>
StrategyOption integer(Field Strategy::*field, std::int64_t least, std::int64_t most, StrategyOption option) {
  option.type = OptionType::Integer;
  option.get = [field](const Strategy& s) { return std::to_string(s.*field); };
  option.set = [=, path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    const auto number = parse<std::int64_t>(value);
    if (!number || *number < least || *number > most)
      throw Error(where, path, shown(value), "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    s.*field = static_cast<Field>(*number);
  };
  return option;
}

// One of `known`.
template <class Enum>
StrategyOption choice(Enum Strategy::*field, const std::vector<Enum>& known, StrategyOption option) {
  option.type = OptionType::Choice;
  for (const Enum word : known) option.values.push_back(name_of(word));
  option.get = [field](const Strategy& s) { return std::string(name_of(s.*field)); };
  option.set = [=, path = option.path, words = option.values](Strategy& s, const std::string& value, const std::string& where) {
    const auto hit = std::find(words.begin(), words.end(), value);
    if (hit == words.end()) throw Error(where, path, shown(value), one_of(words, value));
    s.*field = known[static_cast<std::size_t>(hit - words.begin())];
  };
  return option;
}

// The same for a field that may be empty: "auto".
template <class Enum>
StrategyOption optional_choice(std::optional<Enum> Strategy::*field, const std::vector<Enum>& known, StrategyOption option) {
  option.type = OptionType::Choice;
  option.values = {"auto"};
  for (const Enum word : known) option.values.push_back(name_of(word));
  option.get = [field](const Strategy& s) { return s.*field ? std::string(name_of(*(s.*field))) : "auto"; };
  option.set = [=, path = option.path, words = option.values](Strategy& s, const std::string& value, const std::string& where) {
    const auto hit = std::find(words.begin(), words.end(), value);
    if (hit == words.end()) throw Error(where, path, shown(value), one_of(words, value));
    s.*field = {};
    if (hit != words.begin()) s.*field = known[static_cast<std::size_t>(hit - words.begin()) - 1];
  };
  return option;
}

}  // namespace foreshard::option_kinds
