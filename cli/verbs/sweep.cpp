// foreshard sweep: the best strategy at every point of a range of models, clusters and batches.
#include <algorithm>
#include <charconv>
#include <ostream>
#include <tuple>

#include "cli/job/effort.h"
#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/job/unchanged.h"
#include "cli/parts/quotes.h"
#include "cli/parts/search_failed.h"
#include "cli/parts/search_output.h"
#include "cli/parts/search_run.h"
#include "cli/program/interrupt.h"
#include "cli/program/no_effect.h"
#include "cli/program/progress.h"
#include "cli/program/separate_files.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "report/pictures/plot.h"
#include "report/words/text_table.h"

namespace foreshard {

namespace {

constexpr std::size_t kMostPoints = 1000;

struct Axis {
  std::string path = {};
  std::vector<std::string> values = {};
};
struct SweepPoint {
  std::vector<std::string> values = {};  // [axis]
  Quote quote = {};
  std::int64_t enumerated = 0, evaluated = 0, refined = 0;  // strategies
};

// "cluster.nodes=1,2,4": a path of --set, or the name of an option ("nodes=1,2,4").
Axis parse_axis(const std::string& text) {
  const std::size_t equals = text.find('=');
  Axis axis{.path = text.substr(0, equals)};
  if (equals == std::string::npos || equals == 0)
    throw Error(kCommandLine, "--vary", "\"" + text + "\"", "PATH=A,B,C, such as cluster.nodes=1,2,4 or global-batch=256,512");
  for (std::size_t from = equals + 1; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    if (comma == from) throw Error(kCommandLine, "--vary", "\"" + text + "\"", "a value between commas");
    axis.values.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  if (axis.values.empty()) throw Error(kCommandLine, "--vary", "\"" + text + "\"", "at least one value");
  return axis;
}

std::vector<Axis> read_axes(const Arguments& arguments) {
  std::vector<Axis> axes;
  std::size_t points = 1;
  for (const std::string& text : arguments.all("--vary")) {
    Axis axis = parse_axis(text);
    if (std::ranges::any_of(axes, [&](const Axis& other) { return other.path == axis.path; }))
      throw Error(kCommandLine, "--vary", "\"" + text + "\"", axis.path + " once");
    if (const std::string option = "--" + axis.path; arguments.has(option))
      throw Error(kCommandLine, option, arguments.text(option), "only --vary " + axis.path + ", which replaces it");
    axes.push_back(std::move(axis));
    points *= axes.back().values.size();
    if (points > kMostPoints)
      throw Error(kCommandLine, "--vary", "more than " + std::to_string(kMostPoints) + " points", "fewer values");
  }
  return axes;
}

[[noreturn]] void refuse_axis(const std::string& path, const std::vector<VerbOption>& options) {
  std::vector<std::string> names;
  for (const VerbOption& option : options) names.push_back(option.name.substr(2));
  const std::string nearest = nearest_name(path, names);
  throw Error(kCommandLine, "--vary", "\"" + path + "\"",
              "an option of the job or a path that begins with model., cluster. or strategy." +
                  (nearest.empty() ? "" : " (nearest: " + nearest + ")"));
}

// The arguments of one point.
Arguments with_values(Arguments arguments, const std::vector<Axis>& axes, const std::vector<std::string>& values) {
  const std::vector<VerbOption> options = job_options();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::string option = "--" + axes[i].path;
    const bool named = std::any_of(options.begin(), options.end(), [&](const VerbOption& o) { return o.name == option; });
    if (!named && axes[i].path.find('.') == std::string::npos) refuse_axis(axes[i].path, options);
    if (named && arguments.has(option) && option != "--model" && option != "--cluster")
      throw Error(kCommandLine, option, arguments.text(option), "no " + option + " beside --vary " + axes[i].path);
    arguments = named ? arguments.with(option, values[i]) : arguments.adding("--set", axes[i].path + "=" + values[i]);
  }
  return arguments;
}

// Every combination, the last axis fastest.
std::vector<std::vector<std::string>> combinations(const std::vector<Axis>& axes) {
  std::vector<std::vector<std::string>> all = {{}};
  for (const Axis& axis : axes) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& before : all)
      for (const std::string& value : axis.values) {
        longer.push_back(before);
        longer.back().push_back(value);
      }
    all = std::move(longer);
  }
  return all;
}

// The interval of a step in seconds; a quote has that of the whole training.
std::optional<std::pair<double, double>> step_interval(const Quote& q) {
  if (q.high == Seconds{}) return {};
  const double share = q.best->seconds() / q.time.value;
  return std::pair(share * q.low.value, share * q.high.value);
}

std::string interval_text(const Quote& q) {
  const auto interval = step_interval(q);
  return interval ? in_time_range({interval->first}, {interval->second}) : "-";
}

std::string sweep_text(const std::vector<Axis>& axes, const std::vector<SweepPoint>& points) {
  TextTable table;
  for (const Axis& axis : axes) table.columns.push_back({axis.path});
  for (const char* head : {"GPUs", "step", "90 % interval", "tokens/s", "per GPU", "cost per 1M", "peak GiB", "free GiB"})
    table.columns.push_back({head});
  table.columns.push_back({"best strategy", Align::Left});
  for (const SweepPoint& point : points) {
    std::vector<std::string> row = point.values;
    const Quote& q = point.quote;
    const std::vector<std::string> cells = q.best ? std::vector<std::string>{count_text(q.gpus),
                                                                             in_time({q.best->seconds()}),
                                                                             interval_text(q),
                                                                             with_commas(q.tokens_per_s),
                                                                             with_commas(q.tokens_per_s / q.gpus),
                                                                             q.cost ? plain(*q.cost) : "-",
                                                                             in_gib_text(q.best->estimate.peak),
                                                                             in_gib_text(q.best->estimate.margin),
                                                                             q.strategy}
                                                  : std::vector<std::string>{"-", "-", "-", "-", "-", "-", "-", "-", q.why_not};
    row.insert(row.end(), cells.begin(), cells.end());
    if (q.best && q.searched == Searched::Partly) row.back() += " (partial search)";
    table.rows.push_back(row);
  }
  return table.text(false);
}

std::string sweep_csv(const std::vector<Axis>& axes, const std::vector<SweepPoint>& points) {
  std::string out;
  for (const Axis& axis : axes) out += axis.path + ",";
  out +=
      "gpus,iteration_time_s,tokens_per_s,cost_per_million_tokens,kwh_per_million_tokens,peak_memory_bytes,margin_bytes,"
      "strategy,search\n";
  for (const SweepPoint& point : points) {
    const Quote& q = point.quote;
    for (const std::string& value : point.values) out += value + ",";
    if (q.best)
      out += std::to_string(q.gpus) + "," + plain(q.best->seconds()) + "," + plain(q.tokens_per_s) + "," +
             (q.cost ? plain(*q.cost) : "") + "," + (q.energy_kwh ? plain(*q.energy_kwh) : "") + "," +
             std::to_string(q.best->estimate.peak.value) + "," + std::to_string(q.best->estimate.margin.value) + ",\"" +
             q.strategy + "\",";
    else
      out += ",,,,,,,\"" + q.why_not + "\",";
    out += std::string(name_of(q.searched)) + "\n";
  }
  return out;
}

void write_best(JsonWriter& json, const Quote& q) {
  const Candidate& best = *q.best;
  json.field("gpus", q.gpus).field("iteration_time_s", best.seconds()).field("simulated", best.simulated.has_value());
  json.field("tokens_per_s", q.tokens_per_s).key("interval");
  if (const auto interval = step_interval(q))
    json.begin_line_array().value(interval->first).value(interval->second).end_array();
  else
    json.null();
  const auto maybe = [&](const char* key, const std::optional<double>& value) {
    json.key(key);
    value ? json.value(*value) : json.null();
  };
  maybe("cost_per_million_tokens", q.cost), maybe("kwh_per_million_tokens", q.energy_kwh);
  json.field("peak_memory_bytes", best.estimate.peak.value).field("margin_bytes", best.estimate.margin.value);
  json.key("strategy").raw(to_json(best.strategy));
}

std::string sweep_json(const std::vector<Axis>& axes, const std::vector<SweepPoint>& points, int threads) {
  JsonWriter json;
  json.begin_object().key("points").begin_array();
  for (const SweepPoint& point : points) {
    const Quote& q = point.quote;
    json.begin_object().key("values").begin_object();
    for (std::size_t i = 0; i < axes.size(); ++i) json.field(axes[i].path, point.values[i]);
    json.end_object().field("search", name_of(q.searched)).key("feasible");
    if (q.searched == Searched::Not) {
      json.null().end_object();
      continue;
    }
    json.value(q.best.has_value());
    if (q.best) {
      write_best(json, q);
      json.field("enumerated", point.enumerated).field("evaluated", point.evaluated).field("refined", point.refined);
    } else {
      json.field("infeasible_reason", q.why_not);
    }
    json.end_object();
  }
  return json.end_array().field("threads", threads).end_object().text();
}

// A picture of tokens per second over the last axis, with one line for every combination of the others.
std::string sweep_svg(const std::vector<Axis>& axes, const std::vector<SweepPoint>& points, const std::string& title) {
  Plot plot{.title = title, .x_name = axes.back().path, .y_name = "tokens per second"};
  const std::vector<std::string>& words = axes.back().values;
  std::vector<double> numbers;
  for (const std::string& word : words) {
    double number = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (problem == std::errc() && end == word.data() + word.size()) numbers.push_back(number);
  }
  const bool numeric = numbers.size() == words.size();
  if (!numeric) plot.x_words = words;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t at = i % words.size();
    if (at == 0) {
      std::string name;
      for (std::size_t axis = 0; axis + 1 < axes.size(); ++axis)
        name += (axis > 0 ? ", " : "") + axes[axis].path + " " + points[i].values[axis];
      plot.series.push_back({.name = name});
    }
    const Quote& q = points[i].quote;
    if (!q.best) continue;
    PlotPoint& point = plot.series.back().points.emplace_back(numeric ? numbers[at] : static_cast<double>(at), q.tokens_per_s);
    if (const auto interval = step_interval(q)) {
      const double tokens = q.tokens_per_s * q.best->seconds();
      point.low = tokens / interval->second, point.high = tokens / interval->first;
    }
    if (point.high > 0) plot.interval_name = "bars: 90 % prediction intervals";
  }
  for (PlotSeries& series : plot.series) std::ranges::sort(series.points, {}, &PlotPoint::x);
  return plot_svg(plot);
}

bool equal(const Quote& a, const Quote& b) {
  const auto numbers = [](const Quote& q) {
    return std::tuple(q.gpus, q.best ? q.best->seconds() : 0, q.best ? q.best->estimate.peak : Bytes{}, q.cost, q.energy_kwh,
                      q.tokens_per_s, q.why_not);
  };
  return numbers(a) == numbers(b);
}

// Prints a note for an axis along which no answer changes, because the user probably expects a change.
void say_equal_axes(const Arguments& arguments, const Console& console, const std::vector<Axis>& axes,
                    const std::vector<SweepPoint>& points) {
  std::size_t step = points.size();
  for (const Axis& axis : axes) {
    const std::size_t whole = step;
    step /= axis.values.size();
    bool same = axis.values.size() > 1;
    for (std::size_t i = 0; same && i < points.size(); ++i)
      same = equal(points[i].quote, points[i - i % whole + i % step].quote);
    if (same)
      say(arguments, console, "--vary " + axis.path + " changes nothing here: the answers are the same for all its values");
  }
}

// Throws Error when an option is neither given nor varied.
void expect_job(const Arguments& arguments, const std::vector<Axis>& axes) {
  for (const std::string noun : {"model", "cluster"})
    if (!arguments.has("--" + noun) && std::ranges::find(axes, noun, &Axis::path) == axes.end())
      throw Error(kCommandLine, "--" + noun, "nothing", "a name or a file, or --vary " + noun + "=A,B");
}

ExitCode run_sweep(const Arguments& arguments, const Console& console) {
  watch_interrupt();
  expect_one_format(arguments, {"--json", "--csv"});
  expect_folders(arguments, {"--svg"});
  const std::vector<Axis> axes = read_axes(arguments);
  expect_job(arguments, axes);
  std::optional<Progress> progress(std::in_place, arguments.choice("--progress", "auto", progress_modes()), console);
  std::vector<SweepPoint> points;
  const auto all = combinations(axes);
  for (const auto& values : all) {  // before the first search, so that an error is reported at once
    const Arguments here = with_values(arguments, axes, values);
    const Job job = read_search_job(here);
    const SearchOptions options = read_search_options(here, job);
    refuse_large_search(job, here);
    if (&values == &all.front()) say_of_job(here, job, console), say_varied(here, console, options);
  }
  std::string title;
  ToldSearches searches(console);
  std::optional<std::vector<std::string>> unchanged;
  for (const auto& values : all) {
    if (interrupted()) {
      points.push_back({values, not_searched("")});
      continue;
    }
    const Arguments here = with_values(arguments, axes, values);
    const Job job = read_search_job(here);
    SearchOptions options = read_search_options(here, job);
    options.progress = [&](double fraction) {
      progress->report((static_cast<double>(points.size()) + fraction) / static_cast<double>(all.size()));
    };
    if (title.empty())
      title = (arguments.has("--model") ? job.model.name : "several models") + " on " +
              arguments.text("--cluster", "several clusters");
    const auto answer = searches.run(here, job, options);
    points.push_back({values, quote(job, answer, {})});
    if (const auto* found = std::get_if<SearchResult>(&answer))
      points.back().enumerated = found->enumerated, points.back().evaluated = found->evaluated,
      points.back().refined = found->refined;
    if (const auto& best = points.back().quote.best)
      keep_common(unchanged, without_effect_on_found(here, job, best->strategy, varied_options(options)));
  }
  progress.reset();
  const bool complete =
      std::all_of(points.begin(), points.end(), [](const SweepPoint& p) { return p.quote.searched == Searched::All; });
  if (!complete)
    console.err << "foreshard: interrupted: what is partial or not searched is marked"
                << (arguments.has("--svg") ? "; no picture is drawn" : "") << "\n";
  if (complete) say_all(arguments, console, unchanged.value_or(std::vector<std::string>{}));
  if (complete) say_equal_axes(arguments, console, axes, points);
  if (arguments.has("--svg") && complete) write_file(arguments.text("--svg"), sweep_svg(axes, points, title));
  if (arguments.flag("--json"))
    console.out << sweep_json(axes, points, read_threads(arguments));
  else if (arguments.flag("--csv"))
    console.out << sweep_csv(axes, points);
  else
    console.out << sweep_text(axes, points);
  const bool any = std::any_of(points.begin(), points.end(), [](const SweepPoint& p) { return p.quote.best.has_value(); });
  return interrupted() ? ExitCode::Interrupted : searches.code(any ? ExitCode::Ok : ExitCode::Infeasible);
}

}  // namespace

Verb sweep_verb() {
  const std::string output = "output";
  Verb verb = {
      .name = "sweep",
      .summary = "Finds the best strategy at each point of a range.",
      .notes =
          "What is varied is an option of the job (nodes, global-batch, seq) or a path of --set "
          "(cluster.fabric.oversubscription, model.num_hidden_layers); several --vary make every combination.",
      .examples = {"foreshard sweep --model llama-2-13b --cluster dgx-h100 --global-batch 512 --vary nodes=1,2,4,8",
                   "foreshard sweep --model llama-2-7b --cluster eth25-a100-x4 --global-batch 256 --vary nodes=2,4 --vary "
                   "global-batch=128,256 --svg sweep.svg"},
      .options = job_options(),
      .run = run_sweep};
  for (VerbOption& option : verb.options) option.required = false;  // --vary may give it instead
  verb.options.push_back(force_option());
  const std::vector<VerbOption> searching = search_run_options();
  const std::vector<VerbOption> more = {
      {.name = "--vary", .value = "PATH=A,B,C", .help = "what to vary; may be repeated", .required = true, .repeatable = true},
      {.name = "--svg", .value = "FILE", .help = "draw tokens per second over the last --vary", .group = output},
      {.name = "--json", .help = "print JSON", .group = output},
      {.name = "--csv", .help = "print CSV", .group = output},
      progress_option(output)};
  verb.options.insert(verb.options.end(), searching.begin(), searching.end());
  verb.options.insert(verb.options.end(), more.begin(), more.end());
  return verb;
}

}  // namespace foreshard
