// Scores of predictions against published measurements: errors per cell, out-of-memory verdicts, order inside sweeps, regret of
// the best predicted configuration, and how wide an interval has to be.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace foreshard {

// A row with its prediction. `error` is predicted / measured - 1.
struct ValidatedRow {
  std::string file = {}, row_id = {}, source = {}, gpu = {}, framework = {}, quantity = {};
  std::string architecture = {};  // of the GPU
  int line = 0;
  bool memory = false;   // else time or throughput
  bool experts = false;  // of a model with experts: cells and sums of their own
  bool larger_is_better = false;
  bool ran_out = false;        // measured: out of memory; there is no value then
  bool fits = true;            // predicted
  bool checks_memory = false;  // takes part in the table of verdicts
  double measured = 0, predicted = 0;
  std::string sweep = {};  // rows that differ in their strategy only
  std::vector<std::string> assumed = {};
  bool narrow = false;  // products in less than 16 bits
  int candidates = 1;
  // 90 % interval of the prediction; 0: none. Given beforehand, it stays where the rows are too few to say one.
  double low = 0, high = 0;
  bool extrapolated = false;  // no cell of its kind: the interval is that of all cells
  double error() const { return predicted / measured - 1.0; }
};
struct SkippedRow {
  std::string file = {}, row_id = {}, source = {}, reason = {}, explanation = {};
  int line = 0;
  bool narrow = false;
  bool complete = false;  // dense, shape, degrees and batch given: it should have been scored
};

struct Score {
  int n = 0;
  double median = 0, mean = 0, p90 = 0;   // of |error|
  double signed_median = 0;               // of error
  double signed_gib = 0;                  // median of predicted - measured, rows in GiB
  std::optional<double> coverage90 = {};  // share of rows inside their interval; none has one: nothing
  bool operator==(const Score&) const = default;
};
// How many rows of a memory quantity are within 1, 3 and 8 % of what was measured.
// Dense models only.
struct MemoryQuantity {
  std::string source = {}, quantity = {};
  int n = 0, within_1 = 0, within_3 = 0, within_8 = 0;
  double median = 0, p95 = 0;  // of |error|
};
struct ValidationCell {
  std::string source = {}, gpu = {}, framework = {};
  bool memory = false, experts = false;
  Score score = {};
};
std::string framework_words(const ValidationCell& cell);  // "megatron", "megatron, experts"
struct Overall : Score {
  double mean_of_cells = 0;  // mean over cells of the cells' medians
};
struct Verdicts {  // positive: out of memory
  int true_positive = 0, false_positive = 0, true_negative = 0, false_negative = 0;
  double right() const;
};
struct SourceCount {
  int rows = 0, scored = 0;
};

struct Validation {
  int rows = 0;
  std::vector<ValidatedRow> scored = {};
  std::vector<SkippedRow> skipped = {};
  int complete = 0, complete_scored = 0;  // dense rows in 16 or 32 bits with shape, degrees and batch
  std::vector<ValidationCell> cells = {};
  std::vector<MemoryQuantity> memory_quantities = {};
  Overall time = {}, memory = {};                  // of dense models, as are verdicts, order and regret
  Overall experts_time = {}, experts_memory = {};  // of models with experts
  Verdicts verdicts = {};
  std::map<std::string, Verdicts> verdicts_by_source = {};
  double order = 0;   // share of pairs inside sweeps, measured at least 1 % apart, in the right order
  double rank = 0;    // mean over sweeps of Spearman's correlation
  double regret = 0;  // mean over sweeps: measured time of the best predicted over the best measured, less 1
  int pairs = 0, sweeps = 0;
  std::map<std::string, SourceCount> sources = {};
};

// Fills intervals, cells and sums. A row's interval comes from the other rows of its cell, or of all cells of its kind when
// there are fewer than eight. Dense models and those with experts are of different kinds.
Validation validate(std::vector<ValidatedRow> scored, std::vector<SkippedRow> skipped);

// Of dense models: the same with the interval of every row taken from other sources only.
double coverage_across_sources(const std::vector<ValidatedRow>& scored);

double quantile(std::vector<double> values, double q);  // linear between order statistics; 0 for none

}  // namespace foreshard
