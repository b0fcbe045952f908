#include "validation/interval_words.h"

#include <fmt/format.h>

#include <cmath>

namespace foreshard {

TextTable interval_table(const ShippedIntervals& intervals) {
  TextTable table;
  table.columns = {{"source", Align::Left},   {"rows"},           {"in own interval %"},
                   {"in shipped interval %"}, {"interval score"}, {"constant width"}};
  const auto add = [&](const std::string& name, const std::string& rows, std::optional<double> own, double shipped,
                       double score, double constant) {
    table.rows.push_back({name, rows, own ? per_cent(*own) : "-", per_cent(shipped), fmt::format("{:.2f}", score),
                          fmt::format("{:.2f}", constant)});
  };
  for (const ShippedIntervals::OfSource& of : intervals.sources)
    add(of.source, std::to_string(of.n), of.coverage90, of.coverage, of.score, of.constant_score);
  if (intervals.sources.size() > 1)
    add("mean over sources", "", std::nullopt, intervals.coverage, intervals.score, intervals.constant_score);
  return table;
}

std::string interval_lines(const Validation& v) {
  std::string text;
  for (const auto& [what, intervals] : {std::pair("time", &v.time_intervals), {"memory", &v.memory_intervals}}) {
    if (intervals->sources.empty()) continue;
    std::string line = fmt::format(
        "{}: {} % of the rows (mean over {}) lie in the 90 % interval that simulate prints without the row's source; "
        "interval score {:.2f}, {:.2f} with intervals of constant width",
        what, per_cent(intervals->coverage), counted(static_cast<int>(intervals->sources.size()), "source"), intervals->score,
        intervals->constant_score);
    const auto half = [](double width) { return per_cent(std::expm1(width)); };
    constexpr const char* words = "; median half width {} % where the framework was {}";
    if (const auto& width = intervals->half_width_compared) line += fmt::format(words, half(*width), "compared");
    if (const auto& width = intervals->half_width_new) line += fmt::format(words, half(*width), "not compared");
    text += wrapped(line, 2) + "\n";
  }
  return text;
}

void interval_fields(JsonWriter& json, const Validation& v) {
  json.key("intervals").begin_object();
  for (const auto& [what, intervals] : {std::pair("time", &v.time_intervals), {"memory", &v.memory_intervals}}) {
    json.key(what).begin_object().field("coverage_shipped", intervals->coverage).field("interval_score", intervals->score);
    json.field("interval_score_constant_width", intervals->constant_score);
    const auto maybe = [&](const char* key, const std::optional<double>& value) {
      json.key(key);
      value ? json.value(*value) : json.null();
    };
    maybe("half_width_compared", intervals->half_width_compared), maybe("half_width_new", intervals->half_width_new);
    json.key("sources").begin_array();
    for (const ShippedIntervals::OfSource& of : intervals->sources) {
      json.begin_object().field("source", of.source).field("n", of.n);
      maybe("coverage90", of.coverage90);
      json.field("coverage_shipped", of.coverage).field("interval_score", of.score);
      json.field("interval_score_constant_width", of.constant_score).end_object();
    }
    json.end_array().end_object();
  }
  json.end_object();
}

}  // namespace foreshard
