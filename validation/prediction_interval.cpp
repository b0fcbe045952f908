#include "validation/prediction_interval.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

namespace {

constexpr std::size_t kLeastRows = 8;  // of a cell with an interval
constexpr int kSamples = 19;           // quantiles by which each cell counts in the interval of all cells

Spread spread_of(const std::vector<double>& residuals) {
  const LogEnds ends = central_ends(residuals);
  return {.rows = static_cast<int>(residuals.size()), .low = std::exp(ends.low), .high = std::exp(ends.high)};
}

// log(measured / predicted) of the rows of each [GPU generation, framework].
using Cells = std::map<std::pair<std::string, std::string>, std::vector<double>>;

// Appends the spreads of the cells, then that of all cells together. `kind`: a spread with what they have in common.
void add_spreads(const Cells& cells, const Spread& kind, std::vector<Spread>& all) {
  std::vector<double> pooled;
  int rows = 0;
  for (const auto& [cell, residuals] : cells) {
    rows += static_cast<int>(residuals.size());
    for (int i = 1; i <= kSamples; ++i) pooled.push_back(quantile(residuals, i / (kSamples + 1.0)));
    if (residuals.size() < kLeastRows) continue;
    all.push_back(spread_of(residuals));
    all.back().architecture = cell.first, all.back().framework = cell.second, all.back().experts = kind.experts;
    all.back().adapters = kind.adapters, all.back().memory = kind.memory;
  }
  if (pooled.empty()) return;
  all.push_back(kind);
  all.back().rows = rows, all.back().low = std::exp(quantile(pooled, 0.05)), all.back().high = std::exp(quantile(pooled, 0.95));
}

bool has_ratio(const ValidatedRow& row) { return !row.ran_out && row.predicted > 0 && row.measured > 0; }

void add_times(const std::vector<ValidatedRow>& scored, const Spread& kind, std::vector<Spread>& all) {
  Cells cells;
  for (const ValidatedRow& row : scored)
    if (!row.memory && has_ratio(row) && row.experts == kind.experts && row.adapters == kind.adapters)
      cells[{row.architecture, row.framework}].push_back(log_ratio_of_times(row));
  add_spreads(cells, kind, all);
}

void add_memory(const std::vector<ValidatedRow>& scored, std::vector<Spread>& all) {
  Cells cells;
  for (const ValidatedRow& row : scored)
    if (row.memory && has_ratio(row) && row.quantity == "peak_mem_gib")
      cells[{"", row.framework}].push_back(std::log(row.measured / row.predicted));
  add_spreads(cells, {.memory = true}, all);
}

}  // namespace

std::vector<Spread> spreads(const std::vector<ValidatedRow>& scored) {
  std::vector<Spread> all;
  for (const bool experts : {false, true}) add_times(scored, {.experts = experts}, all);
  add_times(scored, {.adapters = true}, all);
  add_memory(scored, all);
  return all;
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
