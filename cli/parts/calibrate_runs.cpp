#include "cli/parts/calibrate_runs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <ostream>

#include "cli/job/profile.h"
#include "cli/parts/refused_rows.h"
#include "cli/program/table.h"
#include "core/base/error.h"
#include "core/base/quantile.h"
#include "core/json/json.h"
#include "validation/learned_runs.h"

namespace foreshard {

namespace {

// A profile is about one device, so rows of another device are wrong input. Rows that cannot be predicted are reported.
std::vector<RunRow> usable_runs(const std::vector<Asked>& asked, const std::vector<std::string>& files) {
  std::vector<RunRow> rows = runs_of(asked);
  if (rows.empty())
    throw Error(joined(files), "rows",
                std::to_string(asked.size()) + " of which none is a whole iteration that can be predicted",
                "runs with iteration times or throughput; \"foreshard validate FILE --per-row\" says what is wrong with each");
  for (RunRow& row : rows) {
    const MeasuredRow& of = *asked[row.asked].row;
    if (row.device != rows.front().device)
      throw Error(of.where(), "gpu", "\"" + of.text("gpu") + "\" (" + row.device + ")",
                  "the GPU of the rows before, " + rows.front().device + ": a profile is about one");
    row.machine = row.device;  // one machine, although the tables may name several sources
  }
  return rows;
}

double median_error(const std::vector<RunRow>& rows, const std::vector<double>& predicted) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < rows.size(); ++i) errors.push_back(std::abs(predicted[i] / rows[i].measured - 1));
  return quantile(errors, 0.5);
}

std::string shapes_text(const LearnedCosts& learned) {
  const LearnedFactors factors(learned);
  Table table{{"part", "kernels", "log2 of sizes", "runs", "factor"}, {}};
  for (const LearnedShape& known : learned.shapes) {
    std::vector<std::string> place;
    for (const double size : known.shape.place) place.push_back(plain(std::round(size * 100) / 100));
    table.rows.push_back({cost_part_words()[static_cast<std::size_t>(known.shape.part)], joined(known.shape.words, " "),
                          joined(place, " "), std::to_string(known.runs),
                          plain(std::round(factors.factor(known.shape) * 1000) / 1000)});
  }
  return table_text(table);
}

}  // namespace

ExitCode calibrate_runs(const Arguments& arguments, const Console& console) {
  const std::vector<std::string> files = arguments.all("--runs");
  std::vector<MeasuredRow> table;
  for (const std::string& path : files) {
    std::vector<MeasuredRow> read = load_measured(path);
    table.insert(table.end(), std::make_move_iterator(read.begin()), std::make_move_iterator(read.end()));
  }
  Predictor predictor;
  const std::vector<Asked> asked = predict_all(predictor, table);
  const std::vector<RunRow> rows = usable_runs(asked, files);
  const ExitCode code = tell_refused_rows(asked, console, rows);
  std::vector<std::size_t> all(rows.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  MachineProfile profile{.device = rows.front().device, .machine = "learned from the runs of " + joined(files)};
  profile.learned = learn_from(rows, all);
  profile.learned->cluster = machine_words(std::get<MeasuredCase>(asked[rows.front().asked].question).cluster);
  const std::string file = arguments.text("--save-profile", "runs.profile.json");
  write_file(file, to_json(profile));
  if (arguments.flag("--json")) {
    console.out << to_json(profile);
    return code;
  }
  std::vector<double> before, after;
  for (const RunRow& row : rows) before.push_back(row.predicted);
  for (const LearnedPrediction& row : predict_left_out(predictor, asked, rows, &RunRow::sweep)) after.push_back(row.predicted);
  console.out << profile.learned->runs << " runs on " << profile.learned->cluster << "; " << table.size() - rows.size()
              << " rows of " << table.size() << " are no iterations or not predicted\n\n"
              << shapes_text(*profile.learned) << "\nmedian error of a run: " << percent(median_error(rows, before))
              << " % before; " << percent(median_error(rows, after))
              << " % by what the others taught that do not share its model, batch and number of GPUs\nwritten: " << file
              << "\n";
  return code;
}

}  // namespace foreshard
