// Scores predictions against published measurements: errors per cell (source, GPU, framework), out-of-memory verdicts, the order of
// the rows of a sweep, the regret of the configuration predicted best, and intervals of predictions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace foreshard {

// 90 % interval of a prediction; high 0: none. `validate` keeps a given one where there are too few rows to compute one.
struct RowInterval {
  double low = 0, high = 0;
  bool extrapolated = false;  // the row's own cell has too few rows: the interval comes from rows of other cells
};
// What `simulate` would have said without the row's source: its 90 % interval (high 0: none), and whether other sources' runs with the
// framework on this generation of GPU were compared; and the ends of one interval for everything, also from other sources, as measured /
// predicted.
struct ShippedInterval {
  double low = 0, high = 0, constant_low = 0, constant_high = 0;
  bool compared = false;
  double tokens = 0;  // of a micro-batch, which it depends on; 0: unknown
};

// A row with its prediction. `error` is predicted / measured - 1.
struct ValidatedRow {
  std::string file = {}, row_id = {}, source = {}, gpu = {}, framework = {}, quantity = {};
  std::string architecture = {};  // of the GPU
  int line = 0;
  bool memory = false;    // false: time or throughput
  bool experts = false;   // of a model with experts; these have cells and sums of their own
  bool adapters = false;  // of training adapters only; these, too
  bool larger_is_better = false;
  bool ran_out = false;        // the measured run ran out of memory; `measured` is then 0
  bool fits = true;            // predicted: the run does not run out of memory
  bool close = false;          // ... but the device's memory lies within the error of such predictions
  bool checks_memory = false;  // counts in Verdicts; of the rows of one run only one does
  double measured = 0, predicted = 0;
  std::string sweep = {};                 // key of the sweep: rows that differ in their strategy only
  std::vector<std::string> assumed = {};  // columns that the row does not state
  bool narrow = false;                    // matrix products in less than 16 bits
  int candidates = 1;                     // strategies of which the fastest was taken
  RowInterval interval = {};              // from the errors of rows like it
  ShippedInterval shipped = {};
  double error() const { return predicted / measured - 1.0; }
  bool usual() const { return !experts && !adapters; }  // of training all parameters of a dense model
};
struct SkippedRow {
  std::string file = {}, row_id = {}, source = {}, reason = {}, explanation = {};
  int line = 0;
  bool narrow = false;
  bool complete = false;  // a dense model with shape, degrees and batch stated: it should have been scored
};

struct Score {
  int n = 0;
  double median = 0, mean = 0, p90 = 0;   // of |error|; p90: 90th percentile
  double signed_median = 0;               // of error
  double signed_gib = 0;                  // median of predicted - measured, rows in GiB
  std::optional<double> coverage90 = {};  // of the rows with an interval, the share inside it; nothing: no intervals
  // The share inside the shipped interval, and its mean score (interval_score); nothing: no rows with one.
  std::optional<double> coverage_shipped = {}, interval_score = {};
  bool operator==(const Score&) const = default;
};
// How many rows of a memory quantity are predicted within 1, 3 and 8 % of the measured value. Dense models only.
struct MemoryQuantity {
  std::string source = {}, quantity = {};
  int n = 0, within_1 = 0, within_3 = 0, within_8 = 0;
  double median = 0, p95 = 0;  // of |error|
};
struct ValidationCell {
  std::string source = {}, gpu = {}, framework = {};
  bool memory = false, experts = false, adapters = false;
  Score score = {};
};
bool is_of(const ValidatedRow& row, const ValidationCell& cell);
std::string framework_words(const ValidationCell& cell);  // "megatron", "megatron, experts", "nemo, adapters"
struct Overall : Score {
  double mean_of_cells = 0;  // mean over cells of the cells' medians
};
struct Verdicts {  // numbers of runs; positive: predicted to run out of memory
  int true_positive = 0, false_positive = 0, true_negative = 0, false_negative = 0;
  // Verdicts of these that are close, of runs that ran out and of runs that ran; runs that ran out and were said to fit, not closely.
  int close_out = 0, close_ran = 0, surely_missed = 0;
  double right() const;  // share of correct verdicts
};
struct SourceCount {
  int rows = 0, scored = 0;
};
// How well the shipped intervals keep their word on sources that they know nothing of, sources alike.
struct ShippedIntervals {
  struct OfSource {
    std::string source = {};
    int n = 0;
    double coverage = 0, score = 0, constant_score = 0;  // of its rows
    std::optional<double> coverage90 = {};               // with the intervals of the rows' own tables
  };
  std::vector<OfSource> sources = {};
  double coverage = 0, score = 0, constant_score = 0;  // means over the sources
  // Medians over parts of sources (framework, GPU generation, kind) of half the width, in ln.
  std::optional<double> half_width_compared = {}, half_width_new = {};
};

struct Validation {
  int rows = 0;
  std::vector<ValidatedRow> scored = {};
  std::vector<SkippedRow> skipped = {};
  int complete = 0, complete_scored = 0;  // dense rows in 16 or 32 bits with shape, degrees and batch; those scored
  std::vector<ValidationCell> cells = {};
  std::vector<MemoryQuantity> memory_quantities = {};
  Overall time = {}, memory = {};                  // of dense models; verdicts, order, rank and regret are too
  Overall experts_time = {}, experts_memory = {};  // of models with experts
  Overall adapters_time = {};                      // of training adapters only
  Verdicts verdicts = {};
  std::map<std::string, Verdicts> verdicts_by_source = {};
  double order = 0;   // of the pairs of rows of a sweep measured at least 1 % apart, the share predicted in the right order
  double rank = 0;    // mean over sweeps of Spearman's rank correlation
  double regret = 0;  // mean over sweeps: measured time of the best predicted over the best measured, less 1
  int pairs = 0, sweeps = 0;  // counted in the three above; a sweep has at least three rows
  double order_of_runs =
      0;  // as order, with two runs counted once also where their source prints both their times and their rates
  int pairs_of_runs = 0;
  std::map<std::string, SourceCount> sources = {};
  ShippedIntervals time_intervals = {}, memory_intervals = {};
};

// Width of the shipped interval in ln, plus 20 times the distance to it where the measured value is outside: smaller is better; the mean is
// least for the true 5th and 95th percentiles (Gneiting and Raftery 2007, equation 43, alpha 0.1).
double interval_score(double low, double high, double value);

// ln(measured time / predicted time). For a rate, where larger is better, the ratio is inverted.
double log_ratio_of_times(const ValidatedRow& row);
// The 90 % interval for one more residual like these: empirical quantiles, for few residuals at least Student's prediction interval.
struct LogEnds {
  double low = 0, high = 0;
};
LogEnds central_ends(const std::vector<double>& residuals);

// Computes intervals, cells and sums. A row's interval comes from the errors of the other rows of its cell; where these are fewer
// than eight, from those of its kind (time or memory; dense, with experts, or of adapters) with the same framework on the same generation
// of GPU; where these are too few as well, from the rows of its kind of other sources.
Validation validate(std::vector<ValidatedRow> scored, std::vector<SkippedRow> skipped);

}  // namespace foreshard
