#include "strategy/verdict/spread.h"

#include <algorithm>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

const std::vector<Spread>& shipped_spreads() {
  static const std::string path = data_directory() + "/accuracy/residuals.json";
  static const std::vector<Spread> spreads = parse_spreads(read_file(path), path);
  return spreads;
}

std::string to_json(const std::vector<Spread>& spreads) {
  JsonWriter json;
  json.begin_object().field("source", "foreshard validate FILE... --residuals FILE");
  json.key("cells").begin_array();
  for (const Spread& spread : spreads) {
    json.begin_object().field("architecture", spread.architecture).field("framework", spread.framework);
    if (spread.experts) json.field("experts", true);
    if (spread.adapters) json.field("adapters", true);
    if (spread.memory) json.field("memory", true);
    json.field("rows", spread.rows).field("low", spread.low).field("high", spread.high).end_object();
  }
  return json.end_array().end_object().text();
}

std::vector<Spread> parse_spreads(const std::string& text, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  json.only({"source", "cells"});
  std::vector<Spread> all;
  for (const JsonReader& cell : json.at("cells").elements()) {
    cell.only({"architecture", "framework", "experts", "adapters", "memory", "rows", "low", "high"});
    all.push_back({.architecture = cell.at("architecture").as_string(),
                   .framework = cell.at("framework").as_string(),
                   .experts = cell.has("experts") && cell.at("experts").as_bool(),
                   .adapters = cell.has("adapters") && cell.at("adapters").as_bool(),
                   .memory = cell.has("memory") && cell.at("memory").as_bool(),
                   .rows = static_cast<int>(cell.at("rows").as_int(1, 1'000'000)),
                   .low = cell.at("low").as_double(0.001, 1000),
                   .high = cell.at("high").as_double(0.001, 1000)});
  }
  return all;
}

PredictionInterval prediction_interval(const std::vector<Spread>& spreads, const std::string& architecture,
                                       const std::string& framework, bool experts, Seconds predicted, bool adapters) {
  const auto at = [&](const std::string& gpu, const std::string& name, bool mixture, bool tuned) {
    return std::find_if(spreads.begin(), spreads.end(), [&](const Spread& s) {
      return !s.memory && s.architecture == gpu && s.framework == name && s.experts == mixture && s.adapters == tuned;
    });
  };
  auto found = at(architecture, framework, experts, adapters);
  const bool extrapolated = found == spreads.end();
  if (extrapolated) found = at("", "", experts, adapters);
  if (found == spreads.end()) found = at("", "", false, false);
  if (found == spreads.end()) return {.low = predicted, .high = predicted, .extrapolated = true};
  return {.low = predicted * found->low, .high = predicted * found->high, .rows = found->rows, .extrapolated = extrapolated};
}

Spread memory_spread(const std::vector<Spread>& spreads, const std::string& framework) {
  for (const std::string& name : {framework, std::string()})
    for (const Spread& spread : spreads)
      if (spread.memory && spread.framework == name) return spread;
  return {};
}

bool is_close(double filled, const Spread& spread) {
  return filled <= 1 ? filled * std::max(1.0, spread.high) > 1 : filled * std::min(1.0, spread.low) <= 1;
}

}  // namespace foreshard
