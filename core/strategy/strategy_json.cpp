// Strategy files. Keys, types, ranges and words all come from the option table, so a file and a command line accept the
// same.
#include <charconv>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/strategy/strategy.h"
#include "core/strategy/strategy_options.h"

namespace foreshard {

namespace {

void write_recompute(JsonWriter& json, const Recompute& recompute) {
  const bool best = recompute.kind == RecomputeKind::Each && recompute.each.empty();
  if (best || (recompute.kind == RecomputeKind::Full && recompute.layers < 0)) {
    json.value(best ? "best" : "auto");
    return;
  }
  json.begin_object().field("kind", name_of(recompute.kind));
  if (recompute.kind == RecomputeKind::Full && !recompute.per_stage.empty()) {
    json.key("layers").begin_line_array();
    for (const int layers : recompute.per_stage) json.value(layers);
    json.end_array();
  } else if (recompute.kind == RecomputeKind::Full && !recompute.only.empty()) {
    json.field("only", to_text(recompute).substr(std::string("layers:").size()));
  } else if (recompute.kind == RecomputeKind::Full) {
    json.field("layers", recompute.layers);
  }
  if (recompute.kind == RecomputeKind::Each) json.field("each", to_text(recompute).substr(std::string("each:").size()));
  if (recompute.kind == RecomputeKind::Rotor || recompute.kind == RecomputeKind::Graph)
    json.field("budget", recompute.budget.value);
  if (recompute.kind == RecomputeKind::Revolve) json.field("checkpoints", recompute.checkpoints);
  if (recompute.kind == RecomputeKind::Modules) {
    json.key("modules").begin_line_array();
    for (const std::string& module : recompute.modules) json.value(module);
    json.end_array();
  }
  json.end_object();
}

void write_stages(JsonWriter& json, const std::vector<StageDegrees>& stages) {
  json.begin_array();
  for (const StageDegrees& stage : stages)
    json.begin_object().field("layers", stage.layers).field("dp", stage.dp).field("tp", stage.tp).end_object();
  json.end_array();
}

std::vector<StageDegrees> read_stages(const JsonReader& json) {
  std::string text;  // the short form checks the rest
  for (const JsonReader& stage : json.elements()) {
    stage.only({"layers", "dp", "tp"});
    const auto number = [&](const char* key, std::int64_t least) {
      const auto value = stage.find(key);
      return std::to_string(value ? value->as_int(least, 1'000'000) : 1);
    };
    stage.at("layers");
    text += (text.empty() ? "" : ",") + number("layers", 0) + ":" + number("dp", 1) + "x" + number("tp", 1);
  }
  return text.empty() ? std::vector<StageDegrees>() : parse_stages(text, json.file());
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

// Refuses, by name, a key that this kind does not have.
std::optional<JsonReader> sub_object(const JsonReader& json, const char* key, bool has_it, const char* kinds) {
  auto found = json.find(key);
  if (found && !has_it) found->fail(std::string("no ") + key + " unless kind is " + kinds);
  return found;
}

std::vector<int> read_layers(const JsonReader& json) {
  std::vector<int> layers;
  for (const JsonReader& count : json.elements()) layers.push_back(static_cast<int>(count.as_int(0, 1'000'000)));
  if (layers.empty()) json.fail("a number for each stage");
  return layers;
}

Recompute read_recompute(const JsonReader& json) {
  json.only({"kind", "layers", "only", "modules", "each", "budget", "checkpoints"});
  Recompute recompute;
  const std::string kind =
      json.at("kind").as_choice({"none", "selective", "full", "modules", "each", "rotor", "revolve", "graph"});
  for (const RecomputeKind known :
       {RecomputeKind::Selective, RecomputeKind::Full, RecomputeKind::Rotor, RecomputeKind::Revolve, RecomputeKind::Graph})
    if (kind == name_of(known)) recompute.kind = known;
  const bool full = kind == "full", schedule = kind == "rotor" || kind == "graph";
  if (const auto layers = sub_object(json, "layers", full, "\"full\"")) {
    if (layers->is_array())
      recompute.per_stage = read_layers(*layers);
    else
      recompute.layers = static_cast<int>(layers->as_int(0, 1'000'000));
  }
  if (const auto only = sub_object(json, "only", full, "\"full\"")) {
    if (json.find("layers")) only->fail("either layers or only");
    recompute = parse_recompute("layers:" + only->as_string(), json.file());
  }
  if (const auto budget = sub_object(json, "budget", schedule, "\"rotor\" or \"graph\"")) recompute.budget = budget->as_bytes();
  if (const auto checkpoints = sub_object(json, "checkpoints", kind == "revolve", "\"revolve\""))
    recompute = parse_recompute("revolve:" + std::to_string(checkpoints->as_int(0, 1'000'000)), json.file());
  const auto each = sub_object(json, "each", kind == "each", "\"each\"");
  if (kind == "each") return parse_recompute("each:" + json.at("each").as_string(), json.file());
  const auto modules = sub_object(json, "modules", kind == "modules", "\"modules\"");
  if (kind != "modules") return recompute;
  if (!modules) return json.at("modules"), recompute;  // throws: the key is missing
  if (modules->size() == 0) modules->fail("at least one module");
  for (const JsonReader& word : modules->elements()) word.as_choice(recompute_modules());
  return parse_recompute(joined_words(*modules), json.file());
}

Overlap read_overlap(const JsonReader& json) {
  std::vector<std::string> known;
  for (const OverlapPart& part : kOverlapParts) known.emplace_back(part.name);
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
  if (option.path == "overlap" && strategy.communication.overlap) return write_overlap(json, *strategy.communication.overlap);
  if (option.path == "stages") return write_stages(json, strategy.stages);
  const std::string text = option.get(strategy);
  switch (option.type) {
    case OptionType::Integer:
    case OptionType::Flag: json.raw(text); return;
    case OptionType::Number:
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
      strategy.communication.overlap = read_overlap(value);
    else if (key == "stages" && value.is_array())
      strategy.stages = read_stages(value);
    else
      find_option(key)->set(strategy, option_text(*find_option(key), value), file_name);
  }
  return strategy;
}

Strategy load_strategy(const std::string& path) { return parse_strategy(read_file(path), path); }

}  // namespace foreshard
