#include "cli/verbs/compare.h"

#include <ostream>

#include "cli/program/separate_files.h"
#include "cli/program/terminal.h"
#include "cli/program/verb.h"
#include "core/json/json.h"
#include "report/tables/compare.h"
#include "report/tables/compare_text.h"

namespace foreshard {

static ExitCode run_compare(const Arguments& arguments, const Console& console) {
  expect_separate_files(arguments, {"A", "B"}, {"--trace"});
  const std::string first = arguments.text("A"), second = arguments.text("B");
  const Result predicted = load_result(first), measured = load_result(second);
  const CompareOptions options{.predicted_name = first,
                               .measured_name = second,
                               .most_spans = static_cast<std::size_t>(arguments.integer("--spans", 10, 0, 100'000'000))};
  const Comparison comparison = compare(predicted, measured, options);
  if (arguments.has("--trace")) write_file(arguments.text("--trace"), compare_trace(predicted, measured));
  console.out << (arguments.flag("--json") ? compare_json(comparison) : compare_text(comparison, terminal_takes_unicode()));
  return ExitCode::Ok;
}

Verb compare_verb() {
  return {.name = "compare",
          .summary = "Compares two results of one plan, such as predicted and measured.",
          .notes =
              "A is what was predicted, B what it is judged by; errors are A / B - 1, of shares A - B. Both may be of any "
              "origin. A prediction made with --granularity op has a span for every instruction.",
          .examples = {"foreshard compare simulated.result measured.result --trace both.json"},
          .options = {{.name = "A", .value = "A", .help = "a .result file: the prediction", .required = true},
                      {.name = "B", .value = "B", .help = "a .result file of the same plan: the measurement", .required = true},
                      {.name = "--spans", .value = "N", .help = "show the N spans that differ most (default 10)"},
                      {.name = "--trace", .value = "FILE", .help = "write a Chrome trace with both on adjacent tracks"},
                      {.name = "--json", .help = "print JSON"}},
          .run = run_compare};
}

}  // namespace foreshard
