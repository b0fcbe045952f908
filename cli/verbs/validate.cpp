// foreshard validate: predicts published measurements and says how far off it is.
#include <iterator>
#include <map>
#include <ostream>
#include <set>

#include "cli/job/interval.h"
#include "cli/program/no_effect.h"
#include "cli/program/verb.h"
#include "cli/validation/learned_runs.h"
#include "cli/validation/measured_case.h"
#include "cli/validation/measured_prediction.h"
#include "cli/validation/separate_files.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "report/pictures/validation_plot.h"
#include "report/pictures/validation_text.h"
#include "report/validation/learning.h"
#include "report/validation/measured.h"
#include "report/validation/prediction_interval.h"
#include "report/validation/validation.h"

namespace foreshard {

namespace {

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

class Scorer {
 public:
  void add(const Asked& asked, std::size_t number) {
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
                           .predicted = in_unit_of(asked, prediction.value),
                           .sweep = sweep_of(row),
                           .assumed = question.assumed,
                           .narrow = is_narrow(row),
                           .candidates = prediction.candidates};
    if (!scored.memory && !scored.ran_out) give_interval(scored);
    const bool whole = question.quantity <= Quantity::PeakMemory;
    scored.checks_memory = whole && runs_.insert(scored.source + "|" + scored.row_id).second;
    scored_.push_back(std::move(scored));
    asked_.push_back(number);
  }
  Validation finish() { return validate(std::move(scored_), std::move(skipped_)); }
  const std::vector<std::size_t>& asked() const { return asked_; }  // [scored]

 private:
  // What published runs say, for tables with too few rows of their own.
  void give_interval(ValidatedRow& row) {
    const PredictionInterval of_one = prediction_interval(shipped_, row.architecture, row.framework, {1});
    const double low = of_one.low.value, high = of_one.high.value;  // of measured / predicted time
    row.low = row.predicted * (row.larger_is_better ? 1 / high : low);
    row.high = row.predicted * (row.larger_is_better ? 1 / low : high);
    row.extrapolated = of_one.extrapolated;
  }

  std::vector<Spread> shipped_ = shipped_spreads();
  std::vector<ValidatedRow> scored_ = {};
  std::vector<std::size_t> asked_ = {};
  std::vector<SkippedRow> skipped_ = {};
  std::set<std::string> runs_ = {};  // whose verdict is counted already
};

// Whole iterations among the scored rows, each predicted by what the runs of other sweeps and models taught.
std::vector<LearningCell> learn(Predictor& predictor, const std::vector<Asked>& asked, const std::vector<ValidatedRow>& scored,
                                const std::vector<std::size_t>& asked_of) {
  const std::vector<RunRow> rows = runs_of(asked);
  const std::vector<LearnedPrediction> by_sweep = predict_left_out(predictor, asked, rows, &RunRow::sweep);
  const std::vector<LearnedPrediction> by_model = predict_left_out(predictor, asked, rows, &RunRow::model);
  std::map<std::size_t, const ValidatedRow*> plain;
  for (std::size_t i = 0; i < scored.size(); ++i) plain[asked_of[i]] = &scored[i];
  std::vector<LearningRow> learning;
  for (std::size_t i = 0; i < rows.size(); ++i)
    learning.push_back({.plain = *plain.at(rows[i].asked), .sweep_out = by_sweep[i], .model_out = by_model[i]});
  return learning_cells(learning);
}

}  // namespace

static ExitCode run(const Arguments& arguments, const Console& console) {
  if (arguments.flag("--markdown")) refuse_without(arguments, "no --markdown", {"--per-row"});
  const std::vector<std::string> files = {"--residuals", "--svg", "--html"};
  expect_one_format(arguments, {"--json", "--markdown"});
  expect_separate_files(arguments, {}, files);
  expect_folders(arguments, files);
  std::vector<MeasuredRow> rows;
  for (const std::string& path : arguments.all("FILE")) {
    std::vector<MeasuredRow> read = load_measured(path);
    rows.insert(rows.end(), std::make_move_iterator(read.begin()), std::make_move_iterator(read.end()));
  }
  Predictor predictor;
  const std::vector<Asked> asked = predict_all(predictor, rows);
  Scorer scorer;
  for (std::size_t i = 0; i < asked.size(); ++i) scorer.add(asked[i], i);
  const Validation validation = scorer.finish();
  std::vector<LearningCell> learned;
  if (arguments.flag("--learn")) learned = learn(predictor, asked, validation.scored, scorer.asked());
  if (arguments.has("--residuals")) write_file(arguments.text("--residuals"), to_json(spreads(validation.scored)));
  if (arguments.has("--html")) write_file(arguments.text("--html"), validation_html(validation));
  if (arguments.has("--svg")) write_file(arguments.text("--svg"), validation_svg(validation));
  if (arguments.flag("--json")) {
    const std::string json = validation_json(validation, arguments.flag("--per-row"));
    console.out << (learned.empty() ? json : with_json_value(json, "learning", learning_json(learned), "validation"));
  } else if (arguments.flag("--markdown")) {
    console.out << (arguments.flag("--learn") ? learning_markdown(learned) : validation_markdown(validation));
  } else {
    if (arguments.flag("--per-row")) console.out << validation_rows_text(validation) << "\n";
    console.out << validation_text(validation);
    if (!learned.empty()) console.out << "\n" << learning_text(learned);
  }
  return ExitCode::Ok;
}

Verb validate_verb() {
  return {
      .name = "validate",
      .summary = "Predicts measured runs and reports how far off the predictions are.",
      .notes =
          "A file is a CSV table with one measured quantity per row; docs/validation.md lists the columns. Settings that "
          "a row does not state come from the framework's preset.",
      .examples = {"foreshard validate my-runs.csv", "foreshard validate data/measured/*.csv --json --per-row"},
      .options = {{.name = "FILE", .value = "FILE", .help = "tables of measurements", .required = true, .repeatable = true},
                  {.name = "--json", .help = "print JSON"},
                  {.name = "--per-row", .help = "every prediction, not only the scores"},
                  {.name = "--learn",
                   .help =
                       "also predict each row from the other runs of its source (calibrate --runs), once without its sweep and "
                       "once without its model; takes minutes"},
                  {.name = "--markdown", .help = "print the tables of docs/validation.md; with --learn the table of learning"},
                  {.name = "--residuals", .value = "FILE", .help = "write the errors that prediction intervals are made from"},
                  {.name = "--svg", .value = "FILE", .help = "draw the errors, a strip per source and GPU"},
                  {.name = "--html", .value = "FILE", .help = "write one page with picture, tables and rows"}},
      .run = run};
}

}  // namespace foreshard
