// Strategy files. Keys, types, ranges and words all come from the option table, so a file and a command line accept the
// same.
#include <charconv>

#include "core/error.h"
#include "core/json.h"
#include "core/strategy.h"
#include "core/strategy_options.h"

namespace foreshard {

namespace {

void write_recompute(JsonWriter& json, const Recompute& recompute) {
  if (recompute.kind == RecomputeKind::Full && recompute.layers < 0) {
    json.value("auto");
    return;
  }
  json.begin_object().field("kind", name_of(recompute.kind));
  if (recompute.kind == RecomputeKind::Full) json.field("layers", recompute.layers);
  if (recompute.kind == RecomputeKind::Modules) {
    json.key("modules").begin_line_array();
    for (const std::string& module : recompute.modules) json.value(module);
    json.end_array();
  }
  json.end_object();
}

void write_overlap(JsonWriter& json, const Overlap& overlap) {
  json.begin_object();
  for (const OverlapPart& part : kOverlapParts) json.field(part.name, overlap.*part.field);
  json.end_object();
}

std::string joined_words(const JsonReader& array) {
  std::string text;
  for (const JsonReader& word : array.elements()) text += (text.empty() ? "" : ",") + word.as_string();
  return text;
}

Recompute read_recompute(const JsonReader& json) {
  json.only({"kind", "layers", "modules"});
  Recompute recompute;
  const std::string kind = json.at("kind").as_choice({"none", "selective", "full", "modules"});
  if (kind == "selective") recompute.kind = RecomputeKind::Selective;
  if (kind == "full") recompute.kind = RecomputeKind::Full;
  if (const auto layers = json.find("layers")) {
    if (kind != "full") layers->fail("no layers unless kind is \"full\"");
    recompute.layers = static_cast<int>(layers->as_int(0, 1'000'000));
  }
  const auto modules = json.find("modules");
  if (kind != "modules") {
    if (modules) modules->fail("no modules unless kind is \"modules\"");
    return recompute;
  }
  if (!modules) return json.at("modules"), recompute;  // throws: the key is missing
  if (modules->size() == 0) modules->fail("at least one module");
  for (const JsonReader& word : modules->elements()) word.as_choice(recompute_modules());
  return parse_recompute(joined_words(*modules), json.file());
}

Overlap read_overlap(const JsonReader& json) {
  std::vector<std::string> known;
  for (const OverlapPart& part : kOverlapParts) known.push_back(part.name);
  json.only(known);
  Overlap overlap;
  for (const OverlapPart& part : kOverlapParts)
    if (const auto value = json.find(part.name)) overlap.*part.field = value->as_bool();
  return overlap;
}

std::string shortest(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

// The value as the text that the option takes; the wrong JSON type is refused here.
std::string option_text(const StrategyOption& option, const JsonReader& value) {
  switch (option.type) {
    case OptionType::Integer: return std::to_string(value.as_int());
    case OptionType::Number: return value.is_string() ? value.as_string() : shortest(value.as_double());
    case OptionType::Flag: return value.as_bool() ? "true" : "false";
    case OptionType::Bytes: return value.is_string() ? value.as_string() : std::to_string(value.as_int());
    case OptionType::List: return value.is_array() ? joined_words(value) : value.as_string();
    case OptionType::Text:
    case OptionType::Choice: return value.as_string();
  }
  return "";
}

void write_option(JsonWriter& json, const StrategyOption& option, const Strategy& strategy) {
  json.key(option.path);
  if (option.path == "recompute") return write_recompute(json, strategy.recompute);
  if (option.path == "overlap") return write_overlap(json, strategy.overlap);
  const std::string text = option.get(strategy);
  switch (option.type) {
    case OptionType::Integer:
    case OptionType::Number:
    case OptionType::Flag: json.raw(text); return;
    case OptionType::Bytes:
      if (text == "auto")
        json.value(text);
      else
        json.raw(text);
      return;
    case OptionType::Text:
    case OptionType::Choice:
    case OptionType::List: json.value(text); return;
  }
}

}  // namespace

std::string to_json(const Strategy& strategy) {
  JsonWriter json;
  json.begin_object();
  for (const StrategyOption& option : strategy_options()) write_option(json, option, strategy);
  return json.end_object().text() + "\n";
}

Strategy parse_strategy(const std::string& text, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  std::vector<std::string> known;
  for (const StrategyOption& option : strategy_options()) known.push_back(option.path);
  json.only(known);
  Strategy strategy;
  for (const auto& [key, value] : json.members()) {
    if (key == "recompute" && value.is_object())
      strategy.recompute = read_recompute(value);
    else if (key == "overlap" && value.is_object())
      strategy.overlap = read_overlap(value);
    else
      find_option(key)->set(strategy, option_text(*find_option(key), value), file_name);
  }
  return strategy;
}

Strategy load_strategy(const std::string& path) { return parse_strategy(read_file(path), path); }

}  // namespace foreshard
