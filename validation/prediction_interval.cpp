#include "validation/prediction_interval.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

namespace {

constexpr int kQuantiles = 19;  // errors that are kept of many rows

bool has_ratio(const ValidatedRow& row) { return !row.ran_out && row.predicted > 0 && row.measured > 0; }

ModelKind kind_of(const ValidatedRow& row) {
  if (row.adapters) return ModelKind::Adapters;
  return row.experts && !row.memory ? ModelKind::Experts : ModelKind::Dense;
}

std::vector<ComparedRuns::Error> quantiles(std::vector<ComparedRuns::Error> errors) {
  std::ranges::stable_sort(errors, {}, &ComparedRuns::Error::log_ratio);
  if (errors.size() <= kQuantiles) return errors;
  std::vector<ComparedRuns::Error> kept;
  for (int i = 0; i < kQuantiles; ++i)
    kept.push_back(errors[(2 * static_cast<std::size_t>(i) + 1) * errors.size() / (2 * kQuantiles)]);
  return kept;
}

}  // namespace

SourceNotes parse_source_notes(const std::string& text, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  json.only({"what", "without"});
  SourceNotes notes;
  for (const auto& [source, change] : json.at("without").members()) notes.without[source] = change.as_double(-3, 3);
  return notes;
}

SourceNotes shipped_source_notes() {
  const std::string path = data_directory() + "/accuracy/sources.json";
  return parse_source_notes(read_file(path), path);
}

std::vector<ComparedRuns> compared_runs(const std::vector<ValidatedRow>& scored, const SourceNotes& notes) {
  std::map<std::tuple<bool, std::string, std::string, std::string, ModelKind>, std::vector<ComparedRuns::Error>> cells;
  for (const ValidatedRow& row : scored) {
    if (!has_ratio(row) || (row.memory && row.quantity != "peak_mem_gib")) continue;
    const auto known = notes.without.find(row.source);
    const double change = row.memory || known == notes.without.end() ? 0 : known->second;
    const double ratio = row.memory ? std::log(row.measured / row.predicted) : log_ratio_of_times(row) - change;
    cells[{row.memory, row.source, row.framework, row.memory ? "" : row.architecture, kind_of(row)}].push_back(
        {ratio, row.memory ? 0 : row.shipped.tokens});
  }
  std::vector<ComparedRuns> all;
  for (const auto& [cell, errors] : cells) {
    const auto& [memory, source, framework, architecture, kind] = cell;
    all.push_back({.source = source,
                   .framework = framework,
                   .architecture = architecture,
                   .kind = kind,
                   .memory = memory,
                   .rows = static_cast<int>(errors.size()),
                   .errors = quantiles(errors)});
  }
  return all;
}

}  // namespace foreshard
