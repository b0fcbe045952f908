#include "report/tables/compare_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/printable.h"
#include "core/json/json.h"
#include "core/plan/plan_words.h"
#include "report/tables/stage_tables.h"
#include "report/words/palette.h"
#include "report/words/text_table.h"

namespace foreshard {

namespace {

constexpr std::size_t kMostAction = 16, kMostName = 36;  // characters

std::string signed_percent(double share) { return std::isfinite(share) ? fmt::format("{:+.1f} %", share * 100) : "-"; }

std::string in_bytes(double bytes) { return in_size({static_cast<std::int64_t>(bytes)}); }

std::string shortened(const std::string& name, std::size_t most) {
  return name.size() <= most ? name : name.substr(0, most - 3) + "...";
}

std::string origin_text(Origin origin) { return origin == Origin::Simulated ? "simulated" : "measured"; }

// "-" if the times are those of different devices.
std::string time_error(const Comparison& c, const Compared& seconds) {
  return c.same_device ? signed_percent(seconds.signed_error()) : "-";
}

TextTable whole_table(const Comparison& c) {
  TextTable table{.columns = {{"", Align::Left}, {"A"}, {"B"}, {"error"}}};
  const auto time = [](double s) { return in_time(Seconds{s}); };
  table.rows.push_back(
      {"iteration time", time(c.iteration_time.predicted), time(c.iteration_time.measured), time_error(c, c.iteration_time)});
  const auto share = [&](const std::string& name, const Compared& part) {
    table.rows.push_back({name, in_percent(part.predicted), in_percent(part.measured),
                          c.same_device ? fmt::format("{:+.1f} points", 100 * part.difference()) : "-"});
  };
  share("bubble", c.bubble);
  for (std::size_t cause = 0; cause < kBubbleCauses; ++cause)
    if (c.bubble_by_cause[cause] != Compared{})
      share("  " + words_of(static_cast<BubbleCause>(cause)), c.bubble_by_cause[cause]);
  const auto bytes = [&](const std::string& name, const Compared& part) {
    table.rows.push_back({name, in_bytes(part.predicted), in_bytes(part.measured),
                          part.difference() == 0 ? "equal" : signed_percent(part.signed_error())});
  };
  bytes("memory peak", c.memory);
  for (std::size_t category = 0; category < kCategories; ++category)
    if (c.memory_by_category[category] != Compared{})
      bytes(std::string("  ") + words_of(static_cast<Category>(category)), c.memory_by_category[category]);
  return table;
}

std::string on_device(Origin origin, const std::string& device) {
  return (origin == Origin::Simulated ? "simulated for " : "measured on ") + printable(device);
}

TextTable kind_table(const Comparison& c) {
  TextTable table{.columns = {{"kind", Align::Left}, {"count"}, {"A"}, {"B"}, {"error"}, {"of B"}}};
  double all = 0;
  for (const ComparedKind& row : c.op_kinds) all += row.seconds.measured;
  const double ranks = std::max(c.ranks, 1);
  for (const ComparedKind& row : c.op_kinds)
    table.rows.push_back({row.kind, count_text(row.instructions), in_short_time({row.seconds.predicted / ranks}),
                          in_short_time({row.seconds.measured / ranks}), time_error(c, row.seconds),
                          in_percent(all > 0 ? row.seconds.measured / all : 0)});
  return table;
}

TextTable span_table(const Comparison& c) {
  TextTable table{.columns = {{"rank"}, {"action", Align::Left}, {"instruction", Align::Left}, {"A"}, {"B"}, {"error"}}};
  for (const ComparedSpan& span : c.spans)
    table.rows.push_back(
        {span.ranks > 1 ? fmt::format("{} +{}", span.rank.value, span.ranks - 1) : fmt::format("{}", span.rank.value),
         shortened(span.action_name, kMostAction), shortened(span.instruction_name, kMostName),
         in_short_time({span.seconds.predicted}), in_short_time({span.seconds.measured}), time_error(c, span.seconds)});
  return table;
}

JsonWriter& fields(JsonWriter& json, const Compared& pair, double error) {
  json.field("predicted", pair.predicted).field("measured", pair.measured);
  return json.field("signed_error", error);
}

}  // namespace

std::string compare_text(const Comparison& c, bool unicode) {
  std::string text = fmt::format("plan {} on {}: A {}, B {}\n\n", c.plan_hash, counted(c.ranks, "rank"),
                                 origin_text(c.predicted), origin_text(c.measured));
  if (!c.same_device)
    text += fmt::format(
        "A is {}, B is {}.\nTheir times are of different devices and say nothing of each other: only memory has an "
        "error.\n\n",
        on_device(c.predicted, c.predicted_device), on_device(c.measured, c.measured_device));
  text += whole_table(c).text(unicode);
  text += "\nBy kind (time on a rank, mean over ranks; error: A against B)\n" + kind_table(c).text(unicode);
  const auto differs = [](const ComparedSpan& span) { return span.seconds.predicted != span.seconds.measured; };
  if (std::ranges::any_of(c.spans, differs))
    text += "\nSpans that differ most\n" + span_table(c).text(unicode);
  else if (!c.spans.empty())
    text += "\nNo instruction takes longer in one than in the other.\n";
  if (c.without_twin > 0) text += fmt::format("\n{} instructions have a span in only one of the results\n", c.without_twin);
  return text;
}

std::string compare_json(const Comparison& c) {
  JsonWriter json;
  json.begin_object().field("plan_hash", c.plan_hash).field("ranks", c.ranks);
  json.key("origins").begin_object();
  json.field("predicted", word(c.predicted)).field("measured", word(c.measured)).end_object();
  json.key("devices").begin_object().field("predicted", c.predicted_device).field("measured", c.measured_device);
  json.field("same", c.same_device).end_object();
  const auto of_time = [&](double error) { return c.same_device ? error : std::numeric_limits<double>::quiet_NaN(); };
  fields(json.key("iteration_time").begin_object(), c.iteration_time, of_time(c.iteration_time.signed_error())).end_object();
  fields(json.key("bubble").begin_object(), c.bubble, of_time(c.bubble.difference())).end_object();
  json.key("bubble_by_cause").begin_object();
  for (std::size_t cause = 0; cause < kBubbleCauses; ++cause) {
    const Compared& part = c.bubble_by_cause[cause];
    fields(json.key(name_of(static_cast<BubbleCause>(cause))).begin_object(), part, of_time(part.difference())).end_object();
  }
  json.end_object();
  fields(json.key("memory").begin_object(), c.memory, c.memory.signed_error()).end_object();
  json.key("memory_by_category").begin_object();
  for (std::size_t category = 0; category < kCategories; ++category) {
    const Compared& part = c.memory_by_category[category];
    fields(json.key(word(static_cast<Category>(category))).begin_object(), part, part.signed_error()).end_object();
  }
  json.end_object().key("op_kinds").begin_array();
  for (const ComparedKind& row : c.op_kinds)
    fields(json.begin_object().field("kind", row.kind).field("instructions", row.instructions), row.seconds,
           of_time(row.seconds.signed_error()))
        .end_object();
  json.end_array().key("spans").begin_array();
  for (const ComparedSpan& span : c.spans) {
    json.begin_object().field("rank", span.rank.value).field("ranks", span.ranks);
    json.field("action", span.action).field("instruction", span.instruction);
    json.field("action_name", span.action_name).field("instruction_name", span.instruction_name);
    fields(json, span.seconds, of_time(span.seconds.signed_error()));
    json.field("predicted_begin", span.begin.predicted).field("measured_begin", span.begin.measured).end_object();
  }
  json.end_array().field("joined", c.joined).field("without_twin", c.without_twin);
  return json.end_object().text();
}

}  // namespace foreshard
