// foreshard validate: predicts published measurements and prints the errors.
#include <iterator>
#include <ostream>

#include "cli/parts/refused_rows.h"
#include "cli/program/no_effect.h"
#include "cli/program/separate_files.h"
#include "cli/program/verb.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "validation/learned_runs.h"
#include "validation/learning.h"
#include "validation/measured.h"
#include "validation/measured_case.h"
#include "validation/measured_prediction.h"
#include "validation/prediction_interval.h"
#include "validation/score_rows.h"
#include "validation/shipped_interval.h"
#include "validation/validation.h"
#include "validation/validation_plot.h"
#include "validation/validation_text.h"

namespace foreshard {

static ExitCode run_validate(const Arguments& arguments, const Console& console) {
  if (arguments.flag("--markdown") && arguments.flag("--learn"))
    refuse_without(arguments, "no --markdown beside --learn", {"--per-row"});
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
  const ScoredRows scored = score_rows(asked, shipped_comparisons());
  const Validation& validation = scored.validation;
  std::vector<LearningCell> learned;
  if (arguments.flag("--learn")) learned = learning_of(predictor, asked, scored);
  if (arguments.has("--residuals"))
    write_file(arguments.text("--residuals"), to_json(compared_runs(validation.scored, shipped_source_notes())));
  if (arguments.has("--html")) write_file(arguments.text("--html"), validation_html(validation));
  if (arguments.has("--svg")) write_file(arguments.text("--svg"), validation_svg(validation));
  if (arguments.flag("--json")) {
    const std::string json = validation_json(validation, arguments.flag("--per-row"));
    console.out << (learned.empty() ? json : with_json_value(json, "learning", learning_json(learned), "validation"));
  } else if (arguments.flag("--markdown")) {
    console.out << (arguments.flag("--learn") ? learning_markdown(learned) : validation_markdown(validation));
    if (arguments.flag("--per-row")) console.out << "\n" << validation_rows_markdown(validation);
  } else {
    if (arguments.flag("--per-row")) console.out << validation_rows_text(validation) << "\n";
    console.out << validation_text(validation);
    if (!learned.empty()) console.out << "\n" << learning_text(learned);
  }
  return tell_refused_rows(asked, console);
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
                  {.name = "--markdown",
                   .help = "print the tables of docs/validation.md; with --per-row those of docs/scoreboard.md, with --learn "
                           "the table of learning"},
                  {.name = "--residuals", .value = "FILE", .help = "write the errors that prediction intervals are made from"},
                  {.name = "--svg", .value = "FILE", .help = "draw the errors, a strip per source and GPU"},
                  {.name = "--html", .value = "FILE", .help = "write one page with picture, tables and rows"}},
      .run = run_validate};
}

}  // namespace foreshard
