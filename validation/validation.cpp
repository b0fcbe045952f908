#include "validation/validation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/quantile.h"

namespace foreshard {

namespace {

constexpr std::size_t kEnough = 8;  // least residuals for an interval
constexpr double kApart = 0.01;     // relative difference below which a pair is a tie
constexpr std::size_t kLeastSweep = 3;
// 95th percentiles of Student's t distribution with 1 to 17 degrees of freedom.
constexpr double kStudent[] = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833,
                               1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740};

using CellKey = std::tuple<bool, std::string, std::string, std::string, bool, bool>;
CellKey key_of(const ValidatedRow& row) { return {row.memory, row.source, row.gpu, row.framework, row.experts, row.adapters}; }
bool same_kind(const ValidatedRow& a, const ValidatedRow& b) {
  return a.memory == b.memory && a.experts == b.experts && a.adapters == b.adapters;
}

bool has_error(const ValidatedRow& row) { return !row.ran_out; }

bool is_in_shipped(const ValidatedRow& row) { return row.measured >= row.shipped.low && row.measured <= row.shipped.high; }
double shipped_score(const ValidatedRow& row) {
  return interval_score(std::log(row.shipped.low), std::log(row.shipped.high), std::log(row.measured));
}

Score score_of(const std::vector<const ValidatedRow*>& rows) {
  std::vector<double> errors, sizes, gib;
  int inside = 0, with_interval = 0, inside_shipped = 0, with_shipped = 0;
  double interval_scores = 0;
  for (const ValidatedRow* row : rows) {
    errors.push_back(row->error());
    sizes.push_back(std::abs(row->error()));
    if (row->quantity.ends_with("_gib")) gib.push_back(row->predicted - row->measured);
    with_interval += row->interval.high > 0 ? 1 : 0;
    inside += row->measured >= row->interval.low && row->measured <= row->interval.high ? 1 : 0;
    if (row->shipped.high <= 0) continue;
    ++with_shipped, inside_shipped += is_in_shipped(*row) ? 1 : 0;
    interval_scores += shipped_score(*row);
  }
  Score score{.n = static_cast<int>(rows.size())};
  if (rows.empty()) return score;
  score.median = quantile(sizes, 0.5);
  score.p90 = quantile(sizes, 0.9);
  score.mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(sizes.size());
  score.signed_median = quantile(errors, 0.5);
  score.signed_gib = quantile(gib, 0.5);
  if (with_interval > 0) score.coverage90 = inside / static_cast<double>(with_interval);
  if (with_shipped > 0) score.coverage_shipped = inside_shipped / static_cast<double>(with_shipped);
  if (with_shipped > 0) score.interval_score = interval_scores / with_shipped;
  return score;
}

double log_ratio(const ValidatedRow& row) { return std::log(row.measured / row.predicted); }

void set_interval(ValidatedRow& row, const std::vector<double>& residuals) {
  const LogEnds ends = central_ends(residuals);  // of times
  row.interval.low = row.predicted * std::exp(row.larger_is_better ? -ends.high : ends.low);
  row.interval.high = row.predicted * std::exp(row.larger_is_better ? -ends.low : ends.high);
}

using Members = std::vector<const ValidatedRow*>;
std::vector<double> residuals_of_others(const Members& members, const ValidatedRow& row) {
  std::vector<double> residuals;
  for (const ValidatedRow* other : members)
    if (other != &row) residuals.push_back(log_ratio_of_times(*other));
  return residuals;
}

// Rows like a row, though not of its cell: of its kind, with its framework on its generation of GPU.
using LikeKey = std::tuple<bool, bool, bool, std::string, std::string>;
LikeKey like_of(const ValidatedRow& row) { return {row.memory, row.experts, row.adapters, row.architecture, row.framework}; }

void set_intervals(std::vector<ValidatedRow>& rows) {
  std::map<CellKey, Members> cells;
  std::map<LikeKey, Members> alike;
  for (const ValidatedRow& row : rows)
    if (has_error(row)) cells[key_of(row)].push_back(&row), alike[like_of(row)].push_back(&row);
  for (ValidatedRow& row : rows) {
    if (!has_error(row)) continue;
    std::vector<double> residuals = residuals_of_others(cells[key_of(row)], row);
    if (residuals.size() < kEnough) residuals = residuals_of_others(alike[like_of(row)], row);
    const bool extrapolated = residuals.size() < kEnough;
    if (extrapolated) {
      Members others;
      for (const ValidatedRow& other : rows)
        if (has_error(other) && same_kind(other, row) && other.source != row.source) others.push_back(&other);
      residuals = residuals_of_others(others, row);
    }
    if (residuals.size() < kEnough) continue;
    row.interval.extrapolated = extrapolated;
    set_interval(row, residuals);
  }
}

void add_cells(Validation& v) {
  std::map<CellKey, std::vector<const ValidatedRow*>> cells;
  for (const ValidatedRow& row : v.scored)
    if (has_error(row)) cells[key_of(row)].push_back(&row);
  for (const auto& [key, rows] : cells) {
    const auto& [memory, source, gpu, framework, experts, adapters] = key;
    v.cells.push_back({source, gpu, framework, memory, experts, adapters, score_of(rows)});
  }
}

Overall overall(const Validation& v, bool memory, bool experts, bool adapters = false) {
  std::vector<const ValidatedRow*> rows;
  for (const ValidatedRow& row : v.scored)
    if (has_error(row) && row.memory == memory && row.experts == experts && row.adapters == adapters) rows.push_back(&row);
  Overall sum;
  static_cast<Score&>(sum) = score_of(rows);
  double medians = 0;
  int cells = 0;
  for (const ValidationCell& cell : v.cells)
    if (cell.memory == memory && cell.experts == experts && cell.adapters == adapters) medians += cell.score.median, ++cells;
  sum.mean_of_cells = medians / std::max(1, cells);
  return sum;
}

ShippedIntervals shipped_intervals(const std::vector<ValidatedRow>& scored, bool memory) {
  std::map<std::string, std::vector<const ValidatedRow*>> by_source;
  std::map<std::tuple<bool, std::string, std::string, std::string, bool, bool>, std::vector<double>> widths;
  for (const ValidatedRow& row : scored) {
    if (!has_error(row) || row.memory != memory || row.shipped.high <= 0) continue;
    by_source[row.source].push_back(&row);
    widths[{row.shipped.compared, row.source, row.framework, row.architecture, row.experts, row.adapters}].push_back(
        std::log(row.shipped.high / row.shipped.low) / 2);
  }
  ShippedIntervals all;
  for (const auto& [source, rows] : by_source) {
    const Score score = score_of(rows);
    ShippedIntervals::OfSource of{.source = source,
                                  .n = score.n,
                                  .coverage = *score.coverage_shipped,
                                  .score = *score.interval_score,
                                  .coverage90 = score.coverage90};
    for (const ValidatedRow* row : rows)
      of.constant_score += interval_score(std::log(row->shipped.constant_low), std::log(row->shipped.constant_high),
                                          row->memory ? std::log(row->measured / row->predicted) : log_ratio_of_times(*row)) /
                           score.n;
    all.coverage += of.coverage, all.score += of.score, all.constant_score += of.constant_score;
    all.sources.push_back(std::move(of));
  }
  const auto n = static_cast<double>(std::max<std::size_t>(1, all.sources.size()));
  all.coverage /= n, all.score /= n, all.constant_score /= n;
  std::vector<double> compared, fresh;
  for (const auto& [key, values] : widths) (std::get<0>(key) ? compared : fresh).push_back(quantile(values, 0.5));
  if (!compared.empty()) all.half_width_compared = quantile(compared, 0.5);
  if (!fresh.empty()) all.half_width_new = quantile(fresh, 0.5);
  return all;
}

void add_memory_quantities(Validation& v) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> sizes;
  for (const ValidatedRow& row : v.scored)
    if (row.memory && row.usual() && has_error(row)) sizes[{row.source, row.quantity}].push_back(std::abs(row.error()));
  for (const auto& [key, values] : sizes) {
    const std::vector<double>& errors = values;
    const auto within = [&errors](double limit) {
      return static_cast<int>(std::count_if(errors.begin(), errors.end(), [limit](double size) { return size <= limit; }));
    };
    v.memory_quantities.push_back({.source = key.first,
                                   .quantity = key.second,
                                   .n = static_cast<int>(errors.size()),
                                   .within_1 = within(0.01),
                                   .within_3 = within(0.03),
                                   .within_8 = within(0.08),
                                   .median = quantile(errors, 0.5),
                                   .p95 = quantile(errors, 0.95)});
  }
}

void add_verdicts(Validation& v) {
  for (const ValidatedRow& row : v.scored) {
    if (!row.checks_memory || !row.usual()) continue;
    for (Verdicts* table : {&v.verdicts, &v.verdicts_by_source[row.source]}) {
      if (row.close) ++(row.ran_out ? table->close_out : table->close_ran);
      table->surely_missed += row.ran_out && row.fits && !row.close ? 1 : 0;
      ++(row.ran_out ? (row.fits ? table->false_negative : table->true_positive)
                     : (row.fits ? table->true_negative : table->false_positive));
    }
  }
}

// A value for which smaller is better.
double cost(const ValidatedRow& row, double value) { return row.larger_is_better ? 1.0 / value : value; }

double spearman(const std::vector<const ValidatedRow*>& rows) {
  const auto ranks = [&](auto value) {
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return value(*rows[a]) < value(*rows[b]); });
    std::vector<double> rank(rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<double>(i);
    return rank;
  };
  const std::vector<double> a = ranks([](const ValidatedRow& r) { return cost(r, r.predicted); });
  const std::vector<double> b = ranks([](const ValidatedRow& r) { return cost(r, r.measured); });
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  const auto n = static_cast<double>(rows.size());
  return 1.0 - 6.0 * squares / (n * (n * n - 1.0));
}

void add_order(Validation& v) {
  std::map<std::string, std::vector<const ValidatedRow*>> sweeps;
  for (const ValidatedRow& row : v.scored)
    if (!row.memory && row.usual() && has_error(row) && !row.sweep.empty()) sweeps[row.sweep].push_back(&row);
  using Run = std::pair<std::string, std::string>;
  const auto run_of = [](const ValidatedRow& row) { return Run(row.source, row.row_id); };
  std::set<std::pair<Run, Run>> counted;
  int right = 0, right_runs = 0;
  for (const auto& [name, rows] : sweeps) {
    if (rows.size() < kLeastSweep) continue;
    ++v.sweeps;
    v.rank += spearman(rows);
    const auto by = [](auto value) {
      return [value](const ValidatedRow* a, const ValidatedRow* b) { return cost(*a, (*a).*value) < cost(*b, (*b).*value); };
    };
    const ValidatedRow* chosen = *std::min_element(rows.begin(), rows.end(), by(&ValidatedRow::predicted));
    const ValidatedRow* best = *std::min_element(rows.begin(), rows.end(), by(&ValidatedRow::measured));
    v.regret += cost(*chosen, chosen->measured) / cost(*best, best->measured) - 1.0;
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const double a = cost(*rows[i], rows[i]->measured), b = cost(*rows[j], rows[j]->measured);
        if (std::abs(a / b - 1.0) < kApart) continue;
        const int is_right = (a < b) == (cost(*rows[i], rows[i]->predicted) < cost(*rows[j], rows[j]->predicted)) ? 1 : 0;
        ++v.pairs, right += is_right;
        if (counted.insert(std::minmax(run_of(*rows[i]), run_of(*rows[j]))).second) ++v.pairs_of_runs, right_runs += is_right;
      }
  }
  if (v.sweeps > 0) v.rank /= v.sweeps, v.regret /= v.sweeps;
  if (v.pairs > 0) v.order = right / static_cast<double>(v.pairs);
  if (v.pairs_of_runs > 0) v.order_of_runs = right_runs / static_cast<double>(v.pairs_of_runs);
}

}  // namespace

bool is_of(const ValidatedRow& row, const ValidationCell& cell) {
  return key_of(row) == CellKey{cell.memory, cell.source, cell.gpu, cell.framework, cell.experts, cell.adapters};
}

std::string framework_words(const ValidationCell& cell) {
  return cell.framework + (cell.experts ? ", experts" : "") + (cell.adapters ? ", adapters" : "");
}

double Verdicts::right() const {
  const int all = true_positive + false_positive + true_negative + false_negative;
  return all > 0 ? (true_positive + true_negative) / static_cast<double>(all) : 0;
}

double interval_score(double low, double high, double value) {
  return high - low + 20 * (std::max(0.0, low - value) + std::max(0.0, value - high));
}

double log_ratio_of_times(const ValidatedRow& row) { return row.larger_is_better ? -log_ratio(row) : log_ratio(row); }

// Of n + 1 exchangeable residuals the new one lies outside the range of the others with probability 2 / (n + 1). The quantiles are widened
// to account for that (split conformal prediction, Vovk et al. 2005). Below 19 residuals even their range holds less than 90 %: then the
// prediction interval of a normal distribution counts where it is wider.
LogEnds central_ends(const std::vector<double>& residuals) {
  if (residuals.empty()) return {};
  const auto n = static_cast<double>(residuals.size());
  const double tail = std::max(0.0, 0.05 * (n + 1.0) / n - 1.0 / n);
  LogEnds ends = {.low = quantile(residuals, tail), .high = quantile(residuals, 1.0 - tail)};
  if (residuals.size() < 2 || residuals.size() > std::size(kStudent) + 1) return ends;
  const double mean = std::accumulate(residuals.begin(), residuals.end(), 0.0) / n;
  double squares = 0;
  for (const double residual : residuals) squares += (residual - mean) * (residual - mean);
  const double wide = kStudent[residuals.size() - 2] * std::sqrt(squares / (n - 1) * (1 + 1 / n));
  return {.low = std::min(ends.low, mean - wide), .high = std::max(ends.high, mean + wide)};
}

Validation validate(std::vector<ValidatedRow> scored, std::vector<SkippedRow> skipped) {
  Validation v;
  v.rows = static_cast<int>(scored.size() + skipped.size());
  set_intervals(scored);
  for (const ValidatedRow& row : scored) ++v.sources[row.source].rows, ++v.sources[row.source].scored;
  for (const SkippedRow& row : skipped) ++v.sources[row.source].rows;
  for (const ValidatedRow& row : scored) v.complete_scored += row.narrow || !row.usual() ? 0 : 1;
  v.complete = v.complete_scored;
  for (const SkippedRow& row : skipped) v.complete += row.complete && !row.narrow ? 1 : 0;
  v.scored = std::move(scored);
  v.skipped = std::move(skipped);
  add_cells(v);
  v.time = overall(v, false, false), v.memory = overall(v, true, false);
  v.experts_time = overall(v, false, true), v.experts_memory = overall(v, true, true);
  v.adapters_time = overall(v, false, false, true);
  v.time_intervals = shipped_intervals(v.scored, false), v.memory_intervals = shipped_intervals(v.scored, true);
  add_memory_quantities(v);
  add_verdicts(v);
  add_order(v);
  return v;
}

}  // namespace foreshard
