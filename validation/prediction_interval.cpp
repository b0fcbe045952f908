#include "validation/prediction_interval.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"

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

}  // namespace foreshard
