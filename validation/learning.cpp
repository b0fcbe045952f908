#include "validation/learning.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "core/base/quantile.h"
#include "core/json/json.h"
#include "report/words/text_table.h"

namespace foreshard {

namespace {

using Which = std::function<LearnedPrediction(const LearningRow&)>;

LearnedPrediction plain(const LearningRow& row) {
  return {.predicted = row.plain.predicted, .low = row.plain.interval.low, .high = row.plain.interval.high, .learned = true};
}

// Coverage and width come from the intervals of the predictions, not from `validate`, which gives the regret only.
LearningScore score_of(const std::vector<const LearningRow*>& rows, const Which& which) {
  LearningScore score;
  std::vector<ValidatedRow> scored;
  std::vector<double> widths, errors;
  int inside = 0;
  for (const LearningRow* row : rows) {
    const LearnedPrediction by = which(*row);
    scored.push_back(row->plain);
    scored.back().predicted = by.predicted;
    errors.push_back(std::abs(scored.back().error()));
    if (!by.learned) continue;
    ++score.learned;
    inside += row->plain.measured >= by.low && row->plain.measured <= by.high ? 1 : 0;
    if (by.low > 0) widths.push_back(std::log(by.high / by.low));
  }
  score.median = quantile(errors, 0.5);
  for (const double error : errors) score.mean += error / static_cast<double>(errors.size());
  score.regret = validate(std::move(scored), {}).regret;
  if (score.learned > 0) score.coverage90 = inside / static_cast<double>(score.learned);
  score.width = quantile(widths, 0.5);
  return score;
}

LearningCell cell_of(const std::string& source, const std::vector<const LearningRow*>& rows) {
  std::vector<ValidatedRow> scored;
  for (const LearningRow* row : rows) scored.push_back(row->plain);
  LearningCell cell{.source = source, .rows = static_cast<int>(rows.size()), .sweeps = validate(std::move(scored), {}).sweeps};
  cell.plain = score_of(rows, plain);
  cell.sweep_out = score_of(rows, [](const LearningRow& row) { return row.sweep_out; });
  cell.model_out = score_of(rows, [](const LearningRow& row) { return row.model_out; });
  return cell;
}

std::vector<std::string> line_of(const LearningCell& cell) {
  const auto median = [](const LearningScore& s) { return s.learned > 0 ? per_cent(s.median) : std::string("–"); };
  const auto mean = [](const LearningScore& s) { return s.learned > 0 ? per_cent(s.mean) : std::string("–"); };
  const auto regret = [&](const LearningScore& s) {
    return cell.sweeps > 0 && s.learned > 0 ? fmt::format("{:.2f}", 100.0 * s.regret) : std::string("–");
  };
  const auto covered = [](const LearningScore& s) { return s.learned > 0 ? per_cent(s.coverage90) : std::string("–"); };
  return {cell.source.empty() ? "all" : cell.source,
          std::to_string(cell.rows),
          median(cell.plain),
          median(cell.sweep_out),
          median(cell.model_out),
          mean(cell.plain),
          mean(cell.sweep_out),
          mean(cell.model_out),
          std::to_string(cell.sweeps),
          regret(cell.plain),
          regret(cell.sweep_out),
          regret(cell.model_out),
          covered(cell.sweep_out),
          covered(cell.model_out)};
}

const std::vector<std::string>& heads() {
  static const std::vector<std::string> list = {"source",    "rows",      "median %",      "sweep out", "model out",
                                                "mean %",    "sweep out", "model out",     "sweeps",    "regret %",
                                                "sweep out", "model out", "in interval %", "model out"};
  return list;
}

}  // namespace

std::vector<LearningCell> learning_cells(const std::vector<LearningRow>& rows) {
  std::map<std::string, std::vector<const LearningRow*>> sources;
  std::vector<const LearningRow*> all;
  for (const LearningRow& row : rows) sources[row.plain.source].push_back(&row), all.push_back(&row);
  std::vector<LearningCell> cells;
  for (const auto& [source, of] : sources) cells.push_back(cell_of(source, of));
  if (cells.size() > 1) cells.push_back(cell_of("", all));
  return cells;
}

std::string learning_text(const std::vector<LearningCell>& cells) {
  TextTable table;
  for (const std::string& head : heads()) table.columns.push_back({head, table.columns.empty() ? Align::Left : Align::Right});
  for (const LearningCell& cell : cells) table.rows.push_back(line_of(cell));
  return "Learned from the machine's other runs: its sweep left out, its model (layers, hidden) left out\n" + table.text(false);
}

std::string learning_markdown(const std::vector<LearningCell>& cells) {
  std::string text = "|", rule = "|";
  for (const std::string& head : heads()) text += " " + head + " |", rule += rule == "|" ? "---|" : "---:|";
  text += "\n" + rule + "\n";
  for (const LearningCell& cell : cells) {
    text += "|";
    for (const std::string& value : line_of(cell)) text += " " + value + " |";
    text += "\n";
  }
  return text;
}

std::string learning_json(const std::vector<LearningCell>& cells) {
  JsonWriter json;
  json.begin_array();
  for (const LearningCell& cell : cells) {
    json.begin_object();
    if (cell.source.empty())
      json.key("source").null();
    else
      json.field("source", cell.source);
    json.field("rows", cell.rows).field("sweeps", cell.sweeps);
    const auto add = [&](const char* name, const LearningScore& s) {
      json.key(name).begin_object().field("learned", s.learned).field("median", s.median).field("mean", s.mean);
      if (cell.sweeps > 0) json.field("regret", s.regret);
      json.field("coverage90", s.coverage90).field("interval_width", s.width).end_object();
    };
    add("without", cell.plain), add("sweep_left_out", cell.sweep_out), add("model_left_out", cell.model_out);
    json.end_object();
  }
  return json.end_array().text();
}

}  // namespace foreshard
