#include "cli/quotes.h"

#include <algorithm>
#include <cmath>

#include "cli/interval.h"
#include "cli/search_output.h"
#include "core/json.h"
#include "report/text_table.h"

namespace foreshard {

namespace {

constexpr double kMillion = 1e6;

std::string text(std::int64_t n) { return std::to_string(n); }

// "3.2 days", "5.1 h", or seconds.
std::string in_days(Seconds time) {
  if (time.value >= 86400) return plain(std::round(time.value / 8640) / 10) + " days";
  if (time.value >= 3600) return plain(std::round(time.value / 360) / 10) + " h";
  return in_time(time);
}

std::string money(const std::optional<double>& amount) {
  if (!amount) return "-";
  return *amount >= 100 ? with_commas(*amount) : plain(std::round(*amount * 10000) / 10000);
}

std::string energy(const std::optional<double>& kwh) { return kwh ? money(kwh) : "-"; }

std::string fastest_note(const std::vector<Quote>& quotes, const Quote& q) {
  const Quote* best = nullptr;
  for (const Quote& other : quotes)
    if (other.best && (!best || other.time < best->time)) best = &other;
  if (!q.best || !best) return "";
  if (&q == best) return "fastest";
  return distinguishable(q, *best) ? "" : "not distinguishable from the fastest";
}

}  // namespace

bool distinguishable(const Quote& a, const Quote& b) { return a.high < b.low || b.high < a.low; }

Quote quote(const Job& job, const std::variant<SearchResult, Infeasible>& answer, const QuoteOptions& options) {
  Quote q{.cluster = job.cluster.name};
  if (const auto* empty = std::get_if<Infeasible>(&answer)) {
    q.why_not = empty->reason + (empty->would_help.empty() ? "" : "; would help: " + empty->would_help.front());
    return q;
  }
  q.best = std::get<SearchResult>(answer).ranked.front();
  q.strategy = short_name(*q.best);
  q.gpus = q.best->gpus();
  const bool tokens = std::holds_alternative<Transformer>(job.model.shape);
  const double each_step =
      static_cast<double>(q.best->strategy.global_batch) * (tokens ? static_cast<double>(q.best->strategy.seq) : 1);
  q.tokens_per_s = each_step / q.best->seconds();
  q.time = {(options.tokens > 0 ? options.tokens : kMillion) / q.tokens_per_s};
  const PredictionInterval step = interval_of(job, q.best->strategy, {q.best->seconds()});
  q.low = q.time * (step.low.value / q.best->seconds()), q.high = q.time * (step.high.value / q.best->seconds());
  const double gpu_hours = q.time.value / 3600 * q.gpus;
  if (job.cluster.price_per_gpu_hour > 0) q.cost = gpu_hours * job.cluster.price_per_gpu_hour;
  if (job.cluster.power_per_gpu_watts > 0) q.energy_kwh = gpu_hours * job.cluster.power_per_gpu_watts / 1000;
  return q;
}

std::string quotes_text(const std::vector<Quote>& quotes, const QuoteOptions& options) {
  TextTable table{.columns = {{"cluster", Align::Left},
                              {"GPUs"},
                              {"step"},
                              {"tokens/s"},
                              {"time"},
                              {"90 % interval"},
                              {"cost"},
                              {"kWh"},
                              {"", Align::Left}}};
  for (const Quote& q : quotes) {
    if (!q.best) {
      table.rows.push_back({q.cluster, "-", "-", "-", "-", "-", "-", "-", q.why_not});
      continue;
    }
    table.rows.push_back({q.cluster, text(q.gpus), in_time({q.best->seconds()}), with_commas(q.tokens_per_s), in_days(q.time),
                          in_days(q.low) + " .. " + in_days(q.high), money(q.cost), energy(q.energy_kwh),
                          fastest_note(quotes, q)});
  }
  std::string out =
      options.tokens > 0 ? "Training on " + with_commas(options.tokens) + " tokens\n\n" : "Per million tokens\n\n";
  out += table.text(false) + "\n";
  for (const Quote& q : quotes)
    if (q.best) out += "  " + q.cluster + ": " + q.strategy + "\n";
  return out;
}

std::string quotes_json(const std::vector<Quote>& quotes, const QuoteOptions& options) {
  JsonWriter json;
  json.begin_object().field("tokens", options.tokens > 0 ? options.tokens : kMillion).key("quotes").begin_array();
  for (const Quote& q : quotes) {
    json.begin_object().field("cluster", q.cluster).field("feasible", q.best.has_value());
    if (!q.best) {
      json.field("infeasible_reason", q.why_not).end_object();
      continue;
    }
    json.field("gpus", q.gpus).key("strategy").raw(to_json(q.best->strategy));
    json.field("iteration_time_s", q.best->seconds()).field("simulated", q.best->simulated.has_value());
    json.field("tokens_per_s", q.tokens_per_s).field("time_s", q.time.value);
    json.key("interval").begin_line_array().value(q.low.value).value(q.high.value).end_array();
    const auto maybe = [&](const char* key, const std::optional<double>& value) {
      json.key(key);
      value ? json.value(*value) : json.null();
    };
    maybe("cost", q.cost), maybe("energy_kwh", q.energy_kwh);
    json.field("note", fastest_note(quotes, q)).end_object();
  }
  return json.end_array().end_object().text();
}

std::string quotes_csv(const std::vector<Quote>& quotes, const QuoteOptions& options) {
  std::string out = "cluster,gpus,strategy,iteration_time_s,tokens_per_s,tokens,time_s,low_s,high_s,cost,energy_kwh,note\n";
  for (const Quote& q : quotes) {
    out += q.cluster + "," + (q.best ? text(q.gpus) : "") + ",\"" + (q.best ? q.strategy : q.why_not) + "\",";
    if (q.best)
      out += plain(q.best->seconds()) + "," + plain(q.tokens_per_s) + "," +
             plain(options.tokens > 0 ? options.tokens : kMillion) + "," + plain(q.time.value) + "," + plain(q.low.value) +
             "," + plain(q.high.value) + "," + (q.cost ? plain(*q.cost) : "") + "," +
             (q.energy_kwh ? plain(*q.energy_kwh) : "");
    else
      out += ",,,,,,,";
    out += "," + fastest_note(quotes, q) + "\n";
  }
  return out;
}

}  // namespace foreshard
