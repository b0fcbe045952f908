// Builders for the entries of the table in strategy_options.cpp. Each takes an entry with its texts (path, flag, help, ...) and sets its
// type, values, get and set. Every `set` throws Error(where, path, found, expected) for a value that it does not accept.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/strategy/strategy_options.h"

namespace foreshard {
const char* name_of(SumOrder order);             // ready, priority
const char* name_of(ServerPlacement placement);  // first, spread, nodes
}  // namespace foreshard

namespace foreshard::option_kinds {

// The value in quotes, or "nothing" if empty.
std::string shown(const std::string& value);
std::string one_of(const std::vector<std::string>& words, const std::string& found);  // "one of a, b (nearest: ...)"

// Access to a field of a member of Strategy, where a plain member pointer would reach only a field of Strategy.
template <class Group, class Field>
auto part(Group Strategy::*group, Field Group::*field) {
  return [=](auto& strategy) -> auto& { return strategy.*group.*field; };
}

std::string shortest(double number);  // the shortest text that reads back equal
// Reads a number in [least, below). With `percent`, "6%" is 0.06. Throws Error.
double read_number(const std::string& value, double least, double below, bool percent, const std::string& path,
                   const std::string& where);

StrategyOption flag(std::function<bool&(Strategy&)> at, StrategyOption option);
StrategyOption layer_split(StrategyOption option);
StrategyOption expert_load(StrategyOption option);
StrategyOption stages(StrategyOption option);
StrategyOption schedule(StrategyOption option);        // a name, or "file:F"
StrategyOption schedule_order(StrategyOption option);  // "0F0 0B0; 1F0 1B0": the lists of the ranks
StrategyOption schedule_times(StrategyOption option);  // "F,I,W,C" or "auto"
StrategyOption placement(StrategyOption option);
StrategyOption recompute(StrategyOption option);
StrategyOption overlap(StrategyOption option);
StrategyOption operator_parts(StrategyOption option);
StrategyOption size(std::function<Bytes&(Strategy&)> at, StrategyOption option);
StrategyOption size_or_auto(std::function<Bytes&(Strategy&)> at, StrategyOption option);  // "auto" is -1
StrategyOption compression(Compression CommunicationChoice::*field, StrategyOption option);
StrategyOption framework_memory(StrategyOption option);
std::vector<StrategyOption> communication_options();  // the entries about communication,
std::vector<StrategyOption> compression_options();    // about what is sent compressed,
std::vector<StrategyOption> expert_options();         // about mixtures of experts
std::vector<StrategyOption> adapter_options();        // and about fine-tuning
// A name out of `known`, which come from files.
StrategyOption named(std::string Strategy::*field, const std::vector<std::string>& known, StrategyOption option);

template <class Number>
std::optional<Number> parse(const std::string& text) {
  Number number = {};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// Below, std::invoke(at, strategy) is the field: `at` is a member pointer or a result of `part`.
template <class At>
using FieldAt = std::remove_cvref_t<std::invoke_result_t<At, Strategy&>>;

// A number in [least, below). With `percent`, "6%" is 0.06.
template <class At>
StrategyOption number(At at, double least, double below, bool percent, StrategyOption option) {
  option.type = OptionType::Number;
  option.get = [at](const Strategy& s) { return shortest(std::invoke(at, s)); };
  option.set = [=, path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    std::invoke(at, s) = read_number(value, least, below, percent, path, where);
  };
  return option;
}

// The same for an optional field; "auto" is empty.
template <class At>
StrategyOption optional_number(At at, double least, double below, bool percent, StrategyOption option) {
  option.type = OptionType::Number;
  option.values = {"auto"};
  option.get = [at](const Strategy& s) {
    const std::optional<double>& number = std::invoke(at, s);
    return number ? shortest(*number) : std::string("auto");
  };
  option.set = [=, path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    std::invoke(at, s) = value == "auto" ? std::nullopt : std::optional(read_number(value, least, below, percent, path, where));
  };
  return option;
}

// An integer in [least, most].
template <class At>
StrategyOption integer(At at, std::int64_t least, std::int64_t most, StrategyOption option) {
  option.type = OptionType::Integer;
  option.get = [at](const Strategy& s) { return std::to_string(std::invoke(at, s)); };
  option.set = [=, path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    const auto number = parse<std::int64_t>(value);
    if (!number || *number < least || *number > most)
      throw Error(where, path, shown(value), "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    std::invoke(at, s) = static_cast<FieldAt<At>>(*number);
  };
  return option;
}

// One of the enumerators `known`, by name_of.
template <class At>
StrategyOption choice(At at, const std::vector<FieldAt<At>>& known, StrategyOption option) {
  option.type = OptionType::Choice;
  for (const auto word : known) option.values.push_back(name_of(word));
  option.get = [at](const Strategy& s) { return std::string(name_of(std::invoke(at, s))); };
  option.set = [=, path = option.path, words = option.values](Strategy& s, const std::string& value, const std::string& where) {
    const auto hit = std::find(words.begin(), words.end(), value);
    if (hit == words.end()) throw Error(where, path, shown(value), one_of(words, value));
    std::invoke(at, s) = known[static_cast<std::size_t>(hit - words.begin())];
  };
  return option;
}

// The same for an optional field; "auto" is empty.
template <class At>
StrategyOption optional_choice(At at, const std::vector<typename FieldAt<At>::value_type>& known, StrategyOption option) {
  option.type = OptionType::Choice;
  option.values = {"auto"};
  for (const auto word : known) option.values.push_back(name_of(word));
  option.get = [at](const Strategy& s) {
    const auto& word = std::invoke(at, s);
    return word ? std::string(name_of(*word)) : std::string("auto");
  };
  option.set = [=, path = option.path, words = option.values](Strategy& s, const std::string& value, const std::string& where) {
    const auto hit = std::find(words.begin(), words.end(), value);
    if (hit == words.end()) throw Error(where, path, shown(value), one_of(words, value));
    std::invoke(at, s) = {};
    if (hit != words.begin()) std::invoke(at, s) = known[static_cast<std::size_t>(hit - words.begin()) - 1];
  };
  return option;
}

}  // namespace foreshard::option_kinds
