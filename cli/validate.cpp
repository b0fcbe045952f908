// foreshard validate: predicts published measurements and says how far off it is.
#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <ostream>
#include <set>
#include <thread>

#include "cli/measured_case.h"
#include "cli/measured_prediction.h"
#include "cli/verb.h"
#include "core/error.h"
#include "core/json.h"
#include "report/measured.h"
#include "report/prediction_interval.h"
#include "report/validation.h"
#include "report/validation_plot.h"
#include "report/validation_text.h"

namespace foreshard {

namespace {

constexpr unsigned kThreads = 8;

bool is_narrow(const MeasuredRow& row) { return row.mentions("precision", "fp8") || row.mentions("precision", "fp4"); }

// The row says what the model needs: dense, and with shape, degrees and batch.
bool is_complete(SkipReason reason) {
  switch (reason) {
    case SkipReason::Moe:
    case SkipReason::Mla:
    case SkipReason::Fp4:
    case SkipReason::UnknownShape:
    case SkipReason::UnknownDegree:
    case SkipReason::UnknownBatch: return false;
    case SkipReason::UnknownGpu:
    case SkipReason::Schedule:
    case SkipReason::Offload:
    case SkipReason::Quantity:
    case SkipReason::Infeasible: return true;
  }
  return true;
}

SkippedRow skipped_row(const MeasuredRow& row, SkipReason reason, const std::string& explanation = "") {
  return {.file = row.file,
          .row_id = row.text("row_id"),
          .source = row.text("source"),
          .reason = name_of(reason),
          .explanation = explanation,
          .line = row.line,
          .narrow = is_narrow(row),
          .complete = is_complete(reason)};
}

// Rows that differ in their strategy only: what somebody looking for a strategy would have to put in order.
std::string sweep_of(const MeasuredRow& row) {
  std::string key;
  for (const char* column : {"source", "measured_quantity", "model_name", "layers", "hidden", "heads", "seq_len", "vocab",
                             "gpu", "num_gpus", "global_batch", "precision", "framework"})
    key += row.text(column) + "|";
  return key;
}

// A row with what is asked of it and what the engine answers.
struct Asked {
  const MeasuredRow* row = nullptr;
  std::variant<MeasuredCase, SkipReason> question = SkipReason::Quantity;
  Prediction prediction = {};
};

// Rows are independent; what they share, the predictor keeps. An exception of any row is thrown here.
void predict_all(std::vector<Asked>& asked) {
  Predictor predictor;
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex door;
  const auto work = [&] {
    for (std::size_t i = next++; i < asked.size(); i = next++) try {
        asked[i].question = measured_case(*asked[i].row);
        if (const auto* question = std::get_if<MeasuredCase>(&asked[i].question))
          asked[i].prediction = predictor.predict(*question);
      } catch (...) {
        const std::lock_guard guard(door);
        if (!failure) failure = std::current_exception();
        return;
      }
  };
  {
    std::vector<std::jthread> threads(std::clamp(std::thread::hardware_concurrency(), 1U, kThreads));
    for (std::jthread& thread : threads) thread = std::jthread(work);
  }
  if (failure) std::rethrow_exception(failure);
}

class Scorer {
 public:
  void add(const Asked& asked) {
    const MeasuredRow& row = *asked.row;
    if (const auto* reason = std::get_if<SkipReason>(&asked.question)) {
      skipped_.push_back(skipped_row(row, *reason));
      return;
    }
    const MeasuredCase& question = std::get<MeasuredCase>(asked.question);
    const Prediction& prediction = asked.prediction;
    if (!prediction.reason.empty()) {
      skipped_.push_back(skipped_row(row, SkipReason::Infeasible, prediction.reason));
      return;
    }
    const bool out = ran_out_of_memory(row);
    ValidatedRow scored = {.file = row.file,
                           .row_id = row.text("row_id"),
                           .source = row.text("source"),
                           .gpu = row.text("gpu"),
                           .framework = question.stack,
                           .quantity = row.text("measured_quantity"),
                           .architecture = gpu_of(question.cluster, question.cluster.nodes.front().shape.gpu).architecture,
                           .line = row.line,
                           .memory = is_memory(question.quantity),
                           .larger_is_better = is_rate(question.quantity),
                           .ran_out = out,
                           .fits = prediction.fits,
                           .measured = out ? 0.0 : *row.number("measured_value"),
                           .predicted = prediction.value,
                           .sweep = sweep_of(row),
                           .assumed = question.assumed,
                           .narrow = is_narrow(row),
                           .candidates = prediction.candidates};
    if (question.quantity == Quantity::Mfu && scored.measured <= 1.0) scored.predicted /= 100.0;  // a share, not per cent
    const bool whole = question.quantity <= Quantity::PeakMemory;
    scored.checks_memory = whole && runs_.insert(scored.source + "|" + scored.row_id).second;
    scored_.push_back(std::move(scored));
  }
  Validation finish() { return validate(std::move(scored_), std::move(skipped_)); }

 private:
  std::vector<ValidatedRow> scored_ = {};
  std::vector<SkippedRow> skipped_ = {};
  std::set<std::string> runs_ = {};  // whose verdict is counted already
};

}  // namespace

static ExitCode run(const Arguments& arguments, const Console& console) {
  std::vector<MeasuredRow> rows;
  for (const std::string& path : arguments.all("FILE")) {
    std::vector<MeasuredRow> read = load_measured(path);
    rows.insert(rows.end(), std::make_move_iterator(read.begin()), std::make_move_iterator(read.end()));
  }
  std::vector<Asked> asked;
  for (const MeasuredRow& row : rows) asked.push_back({.row = &row});
  predict_all(asked);
  Scorer scorer;
  for (const Asked& one : asked) scorer.add(one);
  const Validation validation = scorer.finish();
  if (arguments.has("--residuals")) write_file(arguments.text("--residuals"), to_json(spreads(validation.scored)));
  if (arguments.has("--html")) write_file(arguments.text("--html"), validation_html(validation));
  if (arguments.has("--svg")) write_file(arguments.text("--svg"), validation_svg(validation));
  if (arguments.flag("--json")) {
    console.out << validation_json(validation, arguments.flag("--per-row"));
  } else if (arguments.flag("--markdown")) {
    console.out << validation_markdown(validation);
  } else {
    if (arguments.flag("--per-row")) console.out << validation_rows_text(validation) << "\n";
    console.out << validation_text(validation);
  }
  return ExitCode::Ok;
}

Verb validate_verb() {
  return {.name = "validate",
          .summary = "Predicts measured runs and reports how far off the predictions are.",
          .notes =
              "A file is a CSV table with one measured quantity per row; docs/validation.md lists the columns. Settings that "
              "a row does not state come from the framework's preset.",
          .examples = {"foreshard validate my-runs.csv", "foreshard validate data/measured/*.csv --json --per-row"},
          .options = {{.name = "FILE", .value = "FILE", .help = "tables of measurements", .required = true, .repeatable = true},
                      {.name = "--json", .help = "print JSON"},
                      {.name = "--per-row", .help = "every prediction, not only the scores"},
                      {.name = "--markdown", .help = "print the tables of docs/validation.md"},
                      {.name = "--residuals", .value = "FILE", .help = "write what intervals of predictions come from"},
                      {.name = "--svg", .value = "FILE", .help = "draw the errors, a strip per source and GPU"},
                      {.name = "--html", .value = "FILE", .help = "write one page with picture, tables and rows"}},
          .run = run};
}

}  // namespace foreshard
