#include "cli/parts/quotes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "cli/job/interval.h"
#include "cli/parts/search_output.h"
#include "cli/program/interrupt.h"
#include "core/json/json.h"
#include "report/words/text_table.h"

namespace foreshard {

namespace {

constexpr double kMillion = 1e6;

// "3.2 days", "5.1 h", "32.8 min", or seconds.
std::string in_days(Seconds time) {
  if (time.value >= 86400) return plain(std::round(time.value / 8640) / 10) + " days";
  if (time.value >= 3600) return plain(std::round(time.value / 360) / 10) + " h";
  if (time.value >= 120) return plain(std::round(time.value / 6) / 10) + " min";
  return in_time(time);
}

std::string money(const std::optional<double>& amount) {
  if (!amount) return "-";
  return *amount >= 100 ? with_commas(*amount) : plain(std::round(*amount * 10000) / 10000);
}

std::string energy(const std::optional<double>& kwh) { return kwh ? money(kwh) : "-"; }

// The quantity by which an objective compares quotes: time, money, energy or GPU time of the training.
struct Measure {
  const char* best = "";
  std::function<double(const Quote&)> of = {};
};

double gpu_time(const Quote& q) { return q.time.value * q.gpus; }

Measure measure_of(const std::vector<Quote>& quotes, Objective objective) {
  const auto all_have = [&](std::optional<double> Quote::*amount) {
    return std::all_of(quotes.begin(), quotes.end(), [&](const Quote& q) { return !q.best || (q.*amount).has_value(); });
  };
  if (objective == Objective::Cost && all_have(&Quote::cost)) return {"cheapest", [](const Quote& q) { return *q.cost; }};
  if (objective == Objective::Energy && all_have(&Quote::energy_kwh))
    return {"least energy", [](const Quote& q) { return *q.energy_kwh; }};
  if (objective == Objective::Cost || objective == Objective::Energy) return {"least GPU time", gpu_time};
  return {"fastest", [](const Quote& q) { return q.time.value; }};
}

const Quote* least(const std::vector<Quote>& quotes, const Measure& measure) {
  const Quote* best = nullptr;
  for (const Quote& other : quotes)
    if (other.best && (!best || measure.of(other) < measure.of(*best))) best = &other;
  return best;
}

bool complete(const Quote& q) { return q.searched == Searched::All; }

// Marks the best row by the objective. Rows whose search was interrupted are not compared.
std::string note(const std::vector<Quote>& quotes, const Quote& q, const QuoteOptions& options) {
  if (!std::all_of(quotes.begin(), quotes.end(), complete)) return complete(q) ? "" : name_of(q.searched);
  const Measure measure = measure_of(quotes, options.objective);
  const Quote* best = least(quotes, measure);
  if (!q.best || !best) return "";
  std::string text = &q == best ? measure.best : "";
  if (&q != best && !distinguishable(q, *best, measure.of(q) / q.time.value, measure.of(*best) / best->time.value))
    text = std::string("not distinguishable from the ") + measure.best;
  if (std::string_view(measure.best) != "fastest") return text;
  const Measure cost = measure_of(quotes, Objective::Cost);
  if (std::string_view(cost.best) == "cheapest" && least(quotes, cost) == &q) text += text.empty() ? "cheapest" : ", cheapest";
  return text;
}

std::string interruption(const std::vector<Quote>& quotes) {
  std::string partly, missing;
  for (const Quote& q : quotes) {
    if (q.searched == Searched::Partly) partly += (partly.empty() ? "" : ", ") + q.cluster;
    if (q.searched == Searched::Not) missing += (missing.empty() ? "" : ", ") + q.cluster;
  }
  if (partly.empty() && missing.empty()) return "";
  return "\nInterrupted." + (partly.empty() ? "" : " Searched in part: " + partly + ".") +
         (missing.empty() ? "" : " Not searched: " + missing + ".") + " Nothing is compared.\n";
}

// A note where GPU time is compared because price or power is unknown.
std::string without_price(const std::vector<Quote>& quotes, const QuoteOptions& options) {
  if (std::string_view(measure_of(quotes, options.objective).best) != "least GPU time") return "";
  return std::string("\nNot every cluster file has a ") +
         (options.objective == Objective::Cost ? "price (price_per_gpu_hour)" : "power (power_per_gpu)") +
         ": GPU time is compared, not " + name_of(options.objective) + ".\n";
}

}  // namespace

const char* name_of(Searched searched) {
  return searched == Searched::All ? "complete" : searched == Searched::Partly ? "partial" : "not searched";
}

bool distinguishable(const Quote& a, const Quote& b, double a_per_s, double b_per_s) {
  if (a.high == Seconds{} || b.high == Seconds{}) return false;  // no interval is known
  return a.high.value * a_per_s < b.low.value * b_per_s || b.high.value * b_per_s < a.low.value * a_per_s;
}

Quote not_searched(const std::string& cluster) {
  return {.cluster = cluster, .why_not = name_of(Searched::Not), .searched = Searched::Not};
}

Quote quote(const Job& job, const std::variant<SearchResult, Infeasible>& answer, const QuoteOptions& options) {
  Quote q{.cluster = job.cluster.name};
  if (interrupted()) q.searched = Searched::Partly;
  if (const auto* empty = std::get_if<Infeasible>(&answer)) {
    q.why_not = empty->reason + (empty->would_help.empty() ? "" : "; would help: " + empty->would_help.front());
    return q;
  }
  q.searched = std::get<SearchResult>(answer).interrupted ? Searched::Partly : Searched::All;
  q.best = std::get<SearchResult>(answer).ranked.front();
  q.strategy = short_name(*q.best);
  q.gpus = q.best->gpus();
  const bool tokens = std::holds_alternative<Transformer>(job.model.shape);
  const double each_step =
      static_cast<double>(q.best->strategy.batch.global) * (tokens ? static_cast<double>(q.best->strategy.batch.seq) : 1);
  q.tokens_per_s = each_step / q.best->seconds();
  q.time = {(options.tokens > 0 ? options.tokens : kMillion) / q.tokens_per_s};
  if (const auto step = interval_of(job, q.best->strategy, {q.best->seconds()}))
    q.low = q.time * (step->low.value / q.best->seconds()), q.high = q.time * (step->high.value / q.best->seconds());
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
    table.rows.push_back({q.cluster, std::to_string(q.gpus), in_time({q.best->seconds()}), with_commas(q.tokens_per_s),
                          in_days(q.time), q.high > Seconds{} ? in_days(q.low) + " .. " + in_days(q.high) : "-", money(q.cost),
                          energy(q.energy_kwh), note(quotes, q, options)});
  }
  std::string out =
      options.tokens > 0 ? "Training on " + with_commas(options.tokens) + " tokens\n\n" : "Per million tokens\n\n";
  out += table.text(false) + interruption(quotes) + without_price(quotes, options) + "\n";
  for (const Quote& q : quotes)
    if (q.best) out += "  " + q.cluster + ": " + q.strategy + "\n";
  return out;
}

std::string quotes_json(const std::vector<Quote>& quotes, const QuoteOptions& options) {
  JsonWriter json;
  json.begin_object().field("tokens", options.tokens > 0 ? options.tokens : kMillion).key("quotes").begin_array();
  for (const Quote& q : quotes) {
    json.begin_object().field("cluster", q.cluster).field("search", name_of(q.searched));
    if (q.searched == Searched::Not) {
      json.key("feasible").null().end_object();
      continue;
    }
    json.field("feasible", q.best.has_value());
    if (!q.best) {
      json.field("infeasible_reason", q.why_not).end_object();
      continue;
    }
    json.field("gpus", q.gpus).key("strategy").raw(to_json(q.best->strategy));
    json.field("iteration_time_s", q.best->seconds()).field("simulated", q.best->simulated.has_value());
    json.field("tokens_per_s", q.tokens_per_s).field("time_s", q.time.value);
    json.key("interval");
    if (q.high > Seconds{})
      json.begin_line_array().value(q.low.value).value(q.high.value).end_array();
    else
      json.null();
    const auto maybe = [&](const char* key, const std::optional<double>& value) {
      json.key(key);
      value ? json.value(*value) : json.null();
    };
    maybe("cost", q.cost), maybe("energy_kwh", q.energy_kwh);
    json.field("note", note(quotes, q, options)).end_object();
  }
  json.end_array().field("interrupted", !std::all_of(quotes.begin(), quotes.end(), complete));
  return json.end_object().text();
}

std::string training_text(const Quote& q, const QuoteOptions& options) {
  std::string text = "\nTraining on " + with_commas(options.tokens) + " tokens: " + in_days(q.time) +
                     " (90 %: " + in_days(q.low) + " .. " + in_days(q.high) + ")";
  text += q.cost ? ", cost " + money(q.cost) : ", no cost: the cluster has no price";
  return text + (q.energy_kwh ? ", " + energy(q.energy_kwh) + " kWh" : "") + ".\n";
}

void write_training(JsonWriter& json, const Quote& q, const QuoteOptions& options) {
  json.begin_object().field("tokens", options.tokens).field("time_s", q.time.value);
  json.key("interval").begin_line_array().value(q.low.value).value(q.high.value).end_array();
  json.key("cost");
  q.cost ? json.value(*q.cost) : json.null();
  json.key("energy_kwh");
  q.energy_kwh ? json.value(*q.energy_kwh) : json.null();
  json.end_object();
}

std::string quotes_csv(const std::vector<Quote>& quotes, const QuoteOptions& options) {
  std::string out = "cluster,gpus,strategy,iteration_time_s,tokens_per_s,tokens,time_s,low_s,high_s,cost,energy_kwh,note\n";
  for (const Quote& q : quotes) {
    out += q.cluster + "," + (q.best ? std::to_string(q.gpus) : "") + ",\"" + (q.best ? q.strategy : q.why_not) + "\",";
    if (q.best)
      out += plain(q.best->seconds()) + "," + plain(q.tokens_per_s) + "," +
             plain(options.tokens > 0 ? options.tokens : kMillion) + "," + plain(q.time.value) + "," +
             (q.high > Seconds{} ? plain(q.low.value) : "") + "," + (q.high > Seconds{} ? plain(q.high.value) : "") + "," +
             (q.cost ? plain(*q.cost) : "") + "," + (q.energy_kwh ? plain(*q.energy_kwh) : "");
    else
      out += ",,,,,,,";
    out += "," + note(quotes, q, options) + "\n";
  }
  return out;
}

}  // namespace foreshard
