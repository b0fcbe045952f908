// foreshard show schedule: the action lists of a schedule, a picture and its numbers, without any model or cluster.
#include <algorithm>
#include <charconv>
#include <optional>
#include <ostream>

#include "cli/program/help.h"
#include "cli/program/table.h"
#include "cli/program/verb.h"
#include "core/base/count_text.h"
#include "core/json/json.h"
#include "core/strategy/strategy_options.h"
#include "strategy/schedule/schedule.h"
#include "strategy/schedule/schedule_read.h"
#include "strategy/schedule/schedule_search.h"

namespace foreshard {

namespace {

struct Costs {  // of one micro-batch on one rank; a chunk costs its part of that
  double forward = 1, input_grad = 1, weight_grad = 1, latency = 0;
};

struct Shown {
  const ScheduleEntry* entry = nullptr;
  ScheduleShape shape = {};
  Costs costs = {};
  ScheduleLists lists = {};
  ScheduleTiming<double> timing = {};
  std::vector<int> in_flight = {};
  std::string found = {};        // found by a search: the order that it began with
  std::string stage_times = {};  // the option's text
};

}  // namespace

static std::vector<double> parse_numbers(const std::string& text, const std::string& option, std::size_t count,
                                         const std::string& expected) {
  std::vector<double> numbers(count);
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto [next, problem] = std::from_chars(at, end, numbers[i]);
    const bool last = i + 1 == count;
    if (problem != std::errc() || !(numbers[i] >= 0 && numbers[i] <= 1e9) || (last ? next != end : next == end || *next != ','))
      throw Error(kCommandLine, option, "\"" + text + "\"", expected);
    at = next + 1;
  }
  return numbers;
}

static Costs parse_costs(const Arguments& arguments) {
  Costs costs;
  costs.latency = arguments.number("--latency", 0, 0, 1e9);
  if (!arguments.has("--times")) return costs;
  const auto times = parse_numbers(arguments.text("--times"), "--times", 3, "three numbers F,I,W from 0 to 1e9, such as 1,1,1");
  costs.forward = times[0], costs.input_grad = times[1], costs.weight_grad = times[2];
  return costs;
}

// Parses the times of every stage: "F,I,W;F,I,W;...".
static ScheduleTimes<double> parse_stage_times(const std::string& text, int stages, double latency) {
  ScheduleTimes<double> times;
  times.latency = latency;
  std::size_t from = 0;
  for (int s = 0; s < stages; ++s) {
    const std::size_t to = std::min(text.find(';', from), text.size());
    const auto of = parse_numbers(text.substr(std::min(from, text.size()), to - std::min(from, text.size())), "--stage-times",
                                  3, "F,I,W of each of the " + std::to_string(stages) + " stages, such as 1,1,1;2,2,1");
    times.forward.push_back(of[0]), times.input_grad.push_back(of[1]), times.weight_grad.push_back(of[2]);
    from = to + 1;
  }
  if (from <= text.size()) throw Error(kCommandLine, "--stage-times", "\"" + text + "\"", std::to_string(stages) + " stages");
  return times;
}

static ScheduleTimes<double> times_of(const Arguments& arguments, const Shown& shown) {
  const int stages = shown.shape.p * shown.shape.v * shown.entry->routes;
  if (arguments.has("--stage-times")) {
    auto times = parse_stage_times(arguments.text("--stage-times"), stages / shown.entry->routes, shown.costs.latency);
    for (auto* list : {&times.forward, &times.input_grad, &times.weight_grad})
      if (shown.entry->routes > 1) list->insert(list->end(), list->begin(), list->begin() + stages / 2);
    times.routes = shown.entry->routes;
    return times;
  }
  const double chunks = shown.shape.v;
  auto times = equal_times<double>(stages, shown.costs.forward / chunks, shown.costs.input_grad / chunks,
                                   shown.costs.weight_grad / chunks, shown.costs.latency);
  times.routes = shown.entry->routes;
  return times;
}

// --search: finds a schedule for these times under a limit of micro-batches in flight, one limit for all ranks or one per rank.
static std::optional<Infeasible> search(const Arguments& arguments, Shown& shown, const ScheduleTimes<double>& times) {
  const int p = shown.shape.p;
  ScheduleSearch search{.microbatches = shown.shape.m, .times = times};
  const std::string most = arguments.text("--most-in-flight", std::to_string(shown.shape.m));
  const std::size_t given = 1 + static_cast<std::size_t>(std::ranges::count(most, ','));
  const auto limits = parse_numbers(most, "--most-in-flight", given == 1 ? 1 : static_cast<std::size_t>(p),
                                    "a number of micro-batches, or one for each of the " + std::to_string(p) + " ranks");
  for (int r = 0; r < p; ++r)
    search.most_in_flight.push_back(static_cast<int>(limits[given == 1 ? 0 : static_cast<std::size_t>(r)]));
  auto found = search_schedule(search);
  if (const auto* refused = std::get_if<Infeasible>(&found)) return *refused;
  const auto& best = std::get<FoundSchedule>(found);
  shown.lists = best.lists;
  shown.found = "found from " + best.began_with + ", whose makespan is " + plain(best.makespan_then);
  return {};
}

static double bubble(const Shown& shown) {
  double idle = 0;
  for (const double one : shown.timing.idle) idle += one;
  const double all = shown.timing.makespan * static_cast<double>(shown.timing.idle.size());
  return all > 0 ? idle / all : 0;
}

static std::string as_text(const Shown& shown) {
  const ScheduleShape& shape = shown.shape;
  const std::string what = shown.found.empty() ? shown.entry->name + ": " + shown.entry->summary : "searched: " + shown.found;
  std::string text = wrapped(what, 2) + "\n" + counted(shape.p, "pipeline rank") + ", " +
                     counted(shape.m, "micro-batch", "micro-batches") + ", " + counted(shape.v, "stage") + " per rank; " +
                     (shown.stage_times.empty() ? "F " + plain(shown.costs.forward) + ", I " + plain(shown.costs.input_grad) +
                                                      ", W " + plain(shown.costs.weight_grad)
                                                : "F,I,W " + shown.stage_times) +
                     ", latency " + plain(shown.costs.latency) + "\n\nActions, <stage><work><micro-batch>; B = I + W\n";
  std::string lists = to_text(shown.lists);
  std::size_t rank = 0, from = 0;
  for (std::size_t to = lists.find('\n'); to != std::string::npos; from = to + 1, to = lists.find('\n', from))
    text += "r" + std::to_string(rank++) + ": " + wrapped(lists.substr(from, to - from), 4) + "\n";
  text += "\n" + draw(shown.lists, shown.timing) + "\n";
  Table table{{"rank", "busy", "idle", "idle %", "chunks in flight"}, {}};
  for (std::size_t r = 0; r < shown.lists.size(); ++r) {
    const double idle = shown.timing.idle[r];
    table.rows.push_back({"r" + std::to_string(r), plain(shown.timing.makespan - idle), plain(idle),
                          percent(shown.timing.makespan > 0 ? idle / shown.timing.makespan : 0),
                          std::to_string(shown.in_flight[r])});
  }
  return text + table_text(table) + "\nmakespan " + plain(shown.timing.makespan) + ", idle " + percent(bubble(shown)) +
         " % of it on average\n";
}

static std::string as_json(const Shown& shown) {
  JsonWriter json;
  json.begin_object().field("schedule", shown.entry->name);
  json.field("pp", shown.shape.p).field("micro_batches", shown.shape.m).field("virtual_stages", shown.shape.v);
  json.key("times").begin_object();
  json.field("forward", shown.costs.forward).field("input_grad", shown.costs.input_grad);
  json.field("weight_grad", shown.costs.weight_grad).field("latency", shown.costs.latency).end_object();
  json.field("makespan", shown.timing.makespan).field("bubble_fraction", bubble(shown));
  json.key("ranks").begin_array();
  for (std::size_t r = 0; r < shown.lists.size(); ++r) {
    json.begin_object().field("idle", shown.timing.idle[r]).field("in_flight", shown.in_flight[r]);
    json.key("actions").begin_array();
    for (std::size_t k = 0; k < shown.lists[r].size(); ++k) {
      json.begin_line_array().value(to_text(shown.lists[r][k]));
      json.value(shown.timing.begin[r][k]).value(shown.timing.end[r][k]).end_array();
    }
    json.end_array().end_object();
  }
  return json.end_array().end_object().text();
}

static const std::string kFile = "file:";

static const ScheduleEntry* named_entry(const Arguments& arguments) {
  if (arguments.text("NAME").starts_with(kFile)) return &schedule_entry(Schedule::Listed);
  std::vector<std::string> names;
  for (const ScheduleEntry& entry : schedules()) names.push_back(entry.name);
  return find_schedule(arguments.choice("NAME", "", names));
}

// Reads the lists of a file and checks that they have this shape.
static ScheduleLists lists_of_file(const std::string& path, const ScheduleShape& shape) {
  std::string lines;
  if (path.ends_with(".json"))
    for (const std::string& rank : read_schedule_lists(path)) lines += rank + "\n";
  else
    lines = read_file(path);  // unchanged, so that errors have the file's line numbers
  ScheduleLists lists = parse_schedule_text(lines, path);
  if (const auto wrong = wrong_size(lists, shape))
    throw Error(path, "", *wrong, "lists for --pp, --virtual-stages and --micro-batches as given");
  std::vector<std::string> blocked;
  if (!evaluate(lists, equal_times<std::int64_t>(shape.p * shape.v, 1, 1, 1), &blocked))
    throw Error(path, "", blocked.front(), "an order in which no rank waits for ever");
  return lists;
}

static ExitCode run_show_schedule(const Arguments& arguments, const Console& console) {
  Shown shown;
  shown.entry = named_entry(arguments);
  const bool of_file = arguments.text("NAME").starts_with(kFile);
  shown.shape.p = static_cast<int>(arguments.integer("--pp", 0, 1, 4096));
  shown.shape.m = static_cast<int>(arguments.integer("--micro-batches", 0, 1, 65536));
  shown.shape.v =
      static_cast<int>(arguments.integer("--virtual-stages", shown.entry->chunks == Chunks::One || of_file ? 1 : 2, 1, 1024));
  shown.costs = parse_costs(arguments);
  shown.stage_times = arguments.text("--stage-times");
  if (arguments.has("--save-schedule") && shown.entry->routes > 1)
    throw Error(kCommandLine, "--save-schedule", shown.entry->name, "a schedule with every stage on one rank");
  static constexpr std::int64_t kMostActions = 20'000'000;
  if (std::int64_t{shown.shape.p} * shown.shape.m * shown.shape.v > kMostActions)
    throw Error(kCommandLine, "--micro-batches", std::to_string(shown.shape.m),
                "at most " + count_text(kMostActions) + " stages times micro-batches");
  std::optional<Infeasible> refused = of_file ? std::nullopt : shown.entry->refuse(shown.shape);
  const auto times = times_of(arguments, shown);
  if (!refused && arguments.flag("--search")) {
    if (shown.entry->id != Schedule::OneFOneB)
      throw Error(kCommandLine, "NAME", shown.entry->name, "1f1b beside --search: one stage per rank");
    refused = search(arguments, shown, times);
  } else if (of_file) {
    shown.lists = lists_of_file(arguments.text("NAME").substr(kFile.size()), shown.shape);
  } else if (!refused) {
    shown.shape.times = median_times(times);
    shown.lists = shown.entry->lists(shown.shape);
  }
  if (refused) {
    console.err << "foreshard: " << shown.entry->name << ": " << refused->reason << "\n";
    for (const std::string& change : refused->would_help) console.err << "  would help: " << change << "\n";
    return ExitCode::Infeasible;
  }
  const auto timing = evaluate<double>(shown.lists, times);
  FS_ASSERT(timing.has_value());  // schedules of the table never deadlock (property test); those of a file were checked
  shown.timing = *timing;
  if (arguments.has("--save-schedule")) write_file(arguments.text("--save-schedule"), to_text(shown.lists));
  shown.in_flight = peak_in_flight(shown.lists);
  console.out << (arguments.flag("--json") ? as_json(shown) : as_text(shown));
  return ExitCode::Ok;
}

Verb show_schedule_verb() {
  return {.name = "show schedule",
          .summary = "Prints the action lists of a pipeline schedule, a picture, makespan, idle and in-flight counts.",
          .notes = "Times are those of one micro-batch on one rank, in any unit; with virtual stages each takes its share.",
          .examples =
              {"foreshard show schedule 1f1b --pp 4 --micro-batches 8",
               "foreshard show schedule interleaved-1f1b --pp 2 --micro-batches 4 --virtual-stages 2",
               "foreshard show schedule 1f1b --pp 2 --micro-batches 4 --search --stage-times '1,1,1;2,2,1' --most-in-flight 2"},
          .options =
              {{.name = "NAME",
                .value = "NAME",
                .help = "a schedule of \"foreshard list schedules\", or file:F for lists of your own",
                .required = true},
               {.name = "--pp", .value = "P", .help = "pipeline ranks", .required = true},
               {.name = "--micro-batches", .value = "M", .help = "micro-batches per iteration", .required = true},
               {.name = "--virtual-stages", .value = "V", .help = "stages per rank, for interleaved schedules"},
               {.name = "--times", .value = "F,I,W", .help = "forward, input gradient, weight gradient (default 1,1,1)"},
               {.name = "--stage-times", .value = "F,I,W;...", .help = "instead, of every stage: 1,1,1;2,2,1 for two stages"},
               {.name = "--search",
                .help = "searches for the fastest order of these stages, one per rank, instead of following a rule"},
               {.name = "--most-in-flight",
                .value = "N[,N..]",
                .help = "--search: micro-batches that a rank may keep, the same for all or one number each (default all)"},
               {.name = "--save-schedule", .value = "FILE", .help = "writes the lists, for --schedule file:FILE"},
               {.name = "--latency", .value = "C", .help = "time of a transfer between two ranks (default 0)"},
               {.name = "--json", .help = "print JSON"}},
          .run = run_show_schedule};
}

}  // namespace foreshard
