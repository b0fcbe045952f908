#include "validation/validation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/json/json.h"
#include "report/words/text_table.h"
#include "validation/interval_words.h"
#include "validation/validation_plot.h"

namespace foreshard {

namespace {

std::string with_sign(double value) { return fmt::format("{:+.1f}", 100.0 * value); }

TextTable cell_table(const Validation& v, bool memory) {
  TextTable table;
  table.columns = {{"source", Align::Left},
                   {"GPU", Align::Left},
                   {"framework", Align::Left},
                   {"rows"},
                   {"median %"},
                   {"mean %"},
                   {"90th %"},
                   {"signed %"},
                   {"in interval %"}};
  if (memory) table.columns.push_back({"signed GiB"});
  for (const ValidationCell& cell : v.cells) {
    if (cell.memory != memory) continue;
    const Score& s = cell.score;
    table.rows.push_back({cell.source, cell.gpu, framework_words(cell), std::to_string(s.n), per_cent(s.median),
                          per_cent(s.mean), per_cent(s.p90), with_sign(s.signed_median),
                          s.coverage90 ? per_cent(*s.coverage90) : "-"});
    if (memory) table.rows.back().push_back(fmt::format("{:+.2f}", s.signed_gib));
  }
  return table;
}

TextTable memory_quantity_table(const Validation& v) {
  TextTable table;
  table.columns = {
      {"source", Align::Left}, {"quantity", Align::Left}, {"rows"}, {"median %"}, {"95th %"}, {"within 1 %"}, {"within 3 %"},
      {"within 8 %"}};
  for (const MemoryQuantity& q : v.memory_quantities)
    table.rows.push_back({q.source, q.quantity, std::to_string(q.n), per_cent(q.median), per_cent(q.p95),
                          std::to_string(q.within_1), std::to_string(q.within_3), std::to_string(q.within_8)});
  return table;
}

// Confusion table: the predictions for runs that ran out of memory and for runs that did not.
TextTable verdict_table(const Validation& v) {
  TextTable table;
  table.columns = {{"source", Align::Left}, {"ran out"}, {"predicted so"}, {"close"}, {"said to fit"}, {"ran"},
                   {"predicted so"},        {"close"},   {"right %"}};
  const auto add = [&](const std::string& name, const Verdicts& t) {
    table.rows.push_back({name, std::to_string(t.true_positive + t.false_negative), std::to_string(t.true_positive),
                          std::to_string(t.close_out), std::to_string(t.surely_missed),
                          std::to_string(t.true_negative + t.false_positive), std::to_string(t.true_negative),
                          std::to_string(t.close_ran), per_cent(t.right())});
  };
  for (const auto& [source, verdicts] : v.verdicts_by_source) add(source, verdicts);
  if (table.rows.size() > 1) add("all", v.verdicts);
  return table;
}

std::map<std::string, int> skip_counts(const Validation& v) {
  std::map<std::string, int> counts;
  for (const SkippedRow& row : v.skipped) ++counts[row.reason];
  return counts;
}

std::string line(const std::string& text) { return wrapped(text, 2) + "\n"; }

std::string sum_line(const char* what, const Overall& o) {
  return line(
      fmt::format("{}: {}, error: median {} %, mean {} %, 90th percentile {} %, mean of the cells' medians {} %; {}", what,
                  counted(o.n, "row"), per_cent(o.median), per_cent(o.mean), per_cent(o.p90), per_cent(o.mean_of_cells),
                  o.coverage90 ? per_cent(*o.coverage90) + " % inside their 90 % interval" : "too few rows for an interval"));
}

std::string interval_text(const ValidatedRow& row) {
  if (row.interval.high <= 0) return "-";
  return fmt::format("{:.5g}-{:.5g}{}", row.interval.low, row.interval.high,
                     row.interval.extrapolated ? " (from other GPUs and frameworks)" : "");
}

// As `foreshard simulate` says it: a run that fits, but closer to the capacity than such predictions err, may fit.
std::string verdict_of(const ValidatedRow& row) { return !row.fits ? "does not fit" : row.close ? "may fit" : "fits"; }

std::string verdict_line(const std::string& what, const Verdicts& t) {
  return line(fmt::format(
      "{}: {} % right; of the runs that ran out of memory {} were predicted to, {} were said to fit, {} that they may fit; of "
      "those that ran {} were predicted to fit, {} not; {} verdicts are closer to the limit than such predictions err",
      what, per_cent(t.right()), t.true_positive, t.surely_missed, t.false_negative - t.surely_missed, t.true_negative,
      t.false_positive, t.close_out + t.close_ran));
}

std::string sums(const Validation& v) {
  std::string text = fmt::format("{} rows, {} scored ({} %)\n", count_text(v.rows), count_text(std::ssize(v.scored)),
                                 per_cent(v.rows > 0 ? static_cast<double>(v.scored.size()) / v.rows : 0));
  if (v.complete > 0)
    text += line(fmt::format(
        "complete rows (dense model, fp32, tf32, fp16 or bf16; shape, degrees and batch known): {} of {} scored ({} %)",
        count_text(v.complete_scored), count_text(v.complete), per_cent(static_cast<double>(v.complete_scored) / v.complete)));
  for (const auto& [reason, n] : skip_counts(v)) text += fmt::format("  {} skipped: {}\n", n, reason);
  if (v.time.n > 0) text += sum_line("time", v.time);
  if (v.memory.n > 0) text += sum_line("memory", v.memory);
  if (v.experts_time.n > 0) text += sum_line("models with experts, time", v.experts_time);
  if (v.experts_memory.n > 0) text += sum_line("models with experts, memory", v.experts_memory);
  if (v.adapters_time.n > 0) text += sum_line("adapters, time", v.adapters_time);
  text += interval_lines(v);
  for (const auto& [source, verdicts] : v.verdicts_by_source)
    if (verdicts.true_positive + verdicts.false_negative > 0) text += verdict_line("verdicts, " + source, verdicts);
  if (v.sweeps > 0)
    text += line(fmt::format(
        "order inside {} sweeps: {} % of {} pairs right ({} % of {} with two runs counted once where times and rates of them "
        "are printed), rank correlation {:.2f}; the configuration predicted best is {} % slower than the best",
        v.sweeps, per_cent(v.order), count_text(v.pairs), per_cent(v.order_of_runs), count_text(v.pairs_of_runs), v.rank,
        per_cent(v.regret)));
  return text;
}

void coverage_field(JsonWriter& json, const Score& s) {
  for (const auto& [key, value] : {std::pair("coverage90", &s.coverage90),
                                   {"coverage_shipped", &s.coverage_shipped},
                                   {"interval_score", &s.interval_score}}) {
    json.key(key);
    *value ? json.value(**value) : json.null();
  }
}

void score_fields(JsonWriter& json, const Score& s) {
  json.field("n", s.n).field("median", s.median).field("mean", s.mean).field("p90", s.p90).field("signed", s.signed_median);
  coverage_field(json, s);
}

void overall_fields(JsonWriter& json, const std::string& name, const Overall& o) {
  json.key(name).begin_object();
  json.field("n", o.n)
      .field("median", o.median)
      .field("mean", o.mean_of_cells)
      .field("mean_of_rows", o.mean)
      .field("p90", o.p90);
  json.field("signed", o.signed_median);
  coverage_field(json, o);
  if (name.ends_with("memory")) json.field("signed_gib", o.signed_gib);
  json.end_object();
}

void verdict_fields(JsonWriter& json, const Verdicts& t) {
  json.begin_object().field("true_positive", t.true_positive).field("false_positive", t.false_positive);
  json.field("true_negative", t.true_negative).field("false_negative", t.false_negative);
  json.field("close_ran_out", t.close_out).field("close_ran", t.close_ran).field("said_to_fit", t.surely_missed).end_object();
}

void row_fields(JsonWriter& json, const ValidatedRow& row) {
  json.begin_object().field("file", row.file).field("line", row.line).field("row_id", row.row_id).field("source", row.source);
  json.field("gpu", row.gpu).field("framework", row.framework).field("quantity", row.quantity);
  json.field("experts", row.experts).field("adapters", row.adapters);
  json.key("measured");
  if (row.ran_out)
    json.value("OOM");
  else
    json.value(row.measured);
  json.field("predicted", row.predicted).field("fits", row.fits).field("close", row.close);
  json.field("verdict", verdict_of(row)).field("candidates", row.candidates);
  if (!row.ran_out) {
    json.field("error", row.error());
    json.key("prediction_interval");
    if (row.interval.high > 0)
      json.begin_line_array().value(row.interval.low).value(row.interval.high).end_array();
    else
      json.null();
    json.field("extrapolated", row.interval.extrapolated);
    json.key("interval_shipped");
    if (row.shipped.high > 0)
      json.begin_line_array().value(row.shipped.low).value(row.shipped.high).end_array();
    else
      json.null();
  }
  json.key("assumed").begin_line_array();
  for (const std::string& column : row.assumed) json.value(column);
  json.end_array().end_object();
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

std::string html_table(const TextTable& table) {
  std::string html = "<table>\n<tr>";
  for (const TextTable::Column& column : table.columns) html += "<th>" + escaped(column.header) + "</th>";
  html += "</tr>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c)
      html += std::string(table.columns[c].align == Align::Right ? "<td class=\"n\">" : "<td>") + escaped(row[c]) + "</td>";
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string markdown_table(const TextTable& table) {
  std::string text = "|", rule = "|";
  for (const TextTable::Column& column : table.columns) {
    text += " " + column.header + " |";
    rule += column.align == Align::Right ? "---:|" : "---|";
  }
  text += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const std::string& cell : row) text += " " + cell + " |";
    text += "\n";
  }
  return text + "\n";
}

}  // namespace

std::string validation_text(const Validation& v) {
  std::string text;
  for (const bool memory : {false, true}) {
    const TextTable table = cell_table(v, memory);
    if (!table.rows.empty()) text += std::string(memory ? "Memory" : "Time and throughput") + "\n" + table.text(false) + "\n";
  }
  if (const TextTable table = memory_quantity_table(v); !table.rows.empty())
    text += "Memory by quantity\n" + table.text(false) + "\n";
  for (const auto& [what, intervals] : {std::pair("times", &v.time_intervals), {"memory", &v.memory_intervals}})
    if (!intervals->sources.empty())
      text +=
          std::string("Intervals of ") + what + ", without the row's source\n" + interval_table(*intervals).text(false) + "\n";
  return text + sums(v);
}

std::string validation_json(const Validation& v, bool per_row) {
  JsonWriter json;
  json.begin_object();
  json.field("rows", v.rows).field("scored", static_cast<int>(v.scored.size()));
  json.field("scored_fraction", v.rows > 0 ? static_cast<double>(v.scored.size()) / v.rows : 0.0);
  json.field("complete", v.complete).field("complete_scored", v.complete_scored);
  json.key("sources").begin_object();
  for (const auto& [source, count] : v.sources) {
    json.key(source).begin_object().field("rows", count.rows).field("scored", count.scored);
    json.field("scored_fraction", count.scored / static_cast<double>(count.rows)).end_object();
  }
  json.end_object().key("skipped").begin_array();
  for (const SkippedRow& row : v.skipped) {
    json.begin_object().field("file", row.file).field("line", row.line).field("row_id", row.row_id).field("source", row.source);
    json.field("reason", row.reason).field("explanation", row.explanation).end_object();
  }
  json.end_array().key("cells").begin_array();
  for (const ValidationCell& cell : v.cells) {
    json.begin_object().field("source", cell.source).field("gpu", cell.gpu).field("framework", framework_words(cell));
    json.field("kind", cell.memory ? "memory" : "time");
    score_fields(json, cell.score);
    if (cell.memory) json.field("signed_gib", cell.score.signed_gib);
    json.end_object();
  }
  json.end_array().key("memory_quantities").begin_array();
  for (const MemoryQuantity& q : v.memory_quantities) {
    json.begin_object().field("source", q.source).field("quantity", q.quantity).field("n", q.n).field("median", q.median);
    json.field("p95", q.p95).field("within_1", q.within_1).field("within_3", q.within_3).field("within_8", q.within_8);
    json.end_object();
  }
  json.end_array().key("overall").begin_object();
  overall_fields(json, "time", v.time);
  overall_fields(json, "memory", v.memory);
  overall_fields(json, "experts_time", v.experts_time);
  overall_fields(json, "experts_memory", v.experts_memory);
  overall_fields(json, "adapters_time", v.adapters_time);
  json.key("oom");
  verdict_fields(json, v.verdicts);
  json.key("oom_by_source").begin_object();
  for (const auto& [source, verdicts] : v.verdicts_by_source) verdict_fields(json.key(source), verdicts);
  json.end_object();
  interval_fields(json, v);
  json.field("order", v.order).field("rank_correlation", v.rank).field("regret", v.regret);
  json.field("pairs", v.pairs).field("sweeps", v.sweeps);
  json.field("order_of_runs", v.order_of_runs).field("pairs_of_runs", v.pairs_of_runs).end_object();
  if (per_row) {
    json.key("predictions").begin_array();
    for (const ValidatedRow& row : v.scored) row_fields(json, row);
    json.end_array();
  }
  return json.end_object().text();
}

std::string validation_rows_text(const Validation& v) {
  std::string text;
  for (const ValidatedRow& row : v.scored)
    text += row.ran_out
                ? fmt::format("{}:{} {} {}: OOM, predicted {}\n", row.file, row.line, row.row_id, row.quantity,
                              row.fits ? "to fit" : "so")
                : fmt::format("{}:{} {} {}: measured {:.5g}, predicted {:.5g} ({} %), 90 % interval {}{}\n", row.file, row.line,
                              row.row_id, row.quantity, row.measured, row.predicted, with_sign(row.error()), interval_text(row),
                              std::string(row.fits ? "" : ", predicted not to fit") +
                                  (!row.memory && std::ranges::count(row.assumed, "inter_link_gbps_per_gpu") > 0
                                       ? ", the network's rate is not stated"
                                       : ""));
  for (const SkippedRow& row : v.skipped)
    text += fmt::format("{}:{} {}: skipped, {}{}\n", row.file, row.line, row.row_id, row.reason,
                        row.explanation.empty() ? "" : ": " + row.explanation);
  return text;
}

std::string validation_rows_markdown(const Validation& v) {
  TextTable rows;
  rows.columns = {{"source", Align::Left}, {"row", Align::Left}, {"GPU", Align::Left}, {"quantity", Align::Left}, {"measured"},
                  {"predicted"},           {"90 % interval"},    {"error %"}};
  for (const ValidatedRow& row : v.scored)
    rows.rows.push_back({row.source, row.row_id, row.gpu, row.quantity,
                         row.ran_out ? "OOM" : fmt::format("{:.5g}", row.measured),
                         row.ran_out ? verdict_of(row) : fmt::format("{:.5g}", row.predicted),
                         row.ran_out ? "-" : interval_text(row), row.ran_out ? "-" : with_sign(row.error())});
  TextTable skipped;
  skipped.columns = {{"source", Align::Left}, {"row", Align::Left}, {"why", Align::Left}};
  for (const SkippedRow& row : v.skipped)
    skipped.rows.push_back({row.source, row.row_id, row.reason + (row.explanation.empty() ? "" : ": " + row.explanation)});
  return "## Every row\n\n" + markdown_table(rows) + "## Not predicted\n\n" + markdown_table(skipped);
}

std::string validation_markdown(const Validation& v) {
  std::string text = "## Time and throughput\n\n" + markdown_table(cell_table(v, false));
  text += "## Memory\n\n" + markdown_table(cell_table(v, true));
  text += "By quantity:\n\n" + markdown_table(memory_quantity_table(v));
  text += "## Out of memory or not\n\n" + markdown_table(verdict_table(v));
  text += "## Intervals, without the row's source\n\n" + markdown_table(interval_table(v.time_intervals)) + "Of memory:\n\n" +
          markdown_table(interval_table(v.memory_intervals));
  return text + "## Sums\n\n```\n" + sums(v) + "```\n";
}

std::string validation_html(const Validation& v) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>foreshard: predicted and measured</title>\n"
      "<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:2px 8px}"
      ".n{text-align:right}</style></head><body>\n<h1>Predicted and measured</h1>\n<pre>" +
      escaped(sums(v)) + "</pre>\n" + validation_svg(v);
  html += "<h2>Time and throughput</h2>\n" + html_table(cell_table(v, false));
  html += "<h2>Memory</h2>\n" + html_table(cell_table(v, true));
  html += "<h2>Memory by quantity</h2>\n" + html_table(memory_quantity_table(v));
  html += "<h2>Out of memory or not</h2>\n" + html_table(verdict_table(v));
  html += "<h2>Rows</h2>\n<pre>" + escaped(validation_rows_text(v)) + "</pre>\n";
  return html + "</body></html>\n";
}

}  // namespace foreshard
