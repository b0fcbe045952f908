// foreshard show schedule: the action lists of a schedule, a picture and its numbers, without any model or cluster.
#include <algorithm>
#include <charconv>
#include <ostream>

#include "cli/program/help.h"
#include "cli/program/table.h"
#include "cli/program/verb.h"
#include "core/base/count_text.h"
#include "core/json/json.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

namespace {

struct Costs {  // of one micro-batch on one rank; a chunk takes its share
  double forward = 1, input_grad = 1, weight_grad = 1, latency = 0;
};

struct Shown {
  const ScheduleEntry* entry = nullptr;
  ScheduleShape shape = {};
  Costs costs = {};
  ScheduleLists lists = {};
  ScheduleTiming<double> timing = {};
  std::vector<int> in_flight = {};
};

}  // namespace

static Costs parse_costs(const Arguments& arguments) {
  Costs costs;
  costs.latency = arguments.number("--latency", 0, 0, 1e9);
  if (!arguments.has("--times")) return costs;
  const std::string text = arguments.text("--times");
  double* const fields[] = {&costs.forward, &costs.input_grad, &costs.weight_grad};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (double* field : fields) {
    const auto [next, problem] = std::from_chars(at, end, *field);
    const bool last = field == fields[2];
    if (problem != std::errc() || !(*field >= 0 && *field <= 1e9) || (last ? next != end : next == end || *next != ','))
      throw Error(kCommandLine, "--times", "\"" + text + "\"", "three numbers F,I,W from 0 to 1e9, such as 1,1,1");
    at = next + 1;
  }
  return costs;
}

static ScheduleTiming<double> evaluate_shown(const Shown& shown) {
  const auto stages = static_cast<std::size_t>(shown.shape.p * shown.shape.v * shown.entry->routes);
  const double chunks = shown.shape.v;
  ScheduleTimes<double> times;
  times.forward.assign(stages, shown.costs.forward / chunks);
  times.input_grad.assign(stages, shown.costs.input_grad / chunks);
  times.weight_grad.assign(stages, shown.costs.weight_grad / chunks);
  times.latency = shown.costs.latency, times.routes = shown.entry->routes;
  const auto timing = evaluate<double>(shown.lists, times);
  FS_ASSERT(timing.has_value());  // a list of the table never blocks itself: a property test of the table
  return *timing;
}

static double bubble(const Shown& shown) {
  double idle = 0;
  for (const double one : shown.timing.idle) idle += one;
  const double all = shown.timing.makespan * static_cast<double>(shown.timing.idle.size());
  return all > 0 ? idle / all : 0;
}

static std::string as_text(const Shown& shown) {
  const ScheduleShape& shape = shown.shape;
  std::string text = wrapped(shown.entry->name + ": " + shown.entry->summary, 2) + "\n" + counted(shape.p, "pipeline rank") +
                     ", " + counted(shape.m, "micro-batch", "micro-batches") + ", " + counted(shape.v, "stage") +
                     " per rank; F " + plain(shown.costs.forward) + ", I " + plain(shown.costs.input_grad) + ", W " +
                     plain(shown.costs.weight_grad) + ", latency " + plain(shown.costs.latency) +
                     "\n\nActions, <stage><work><micro-batch>; B = I + W\n";
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

static ExitCode run(const Arguments& arguments, const Console& console) {
  std::vector<std::string> names;
  for (const ScheduleEntry& entry : schedules()) names.push_back(entry.name);
  Shown shown;
  shown.entry = find_schedule(arguments.choice("NAME", "", names));
  shown.shape.p = static_cast<int>(arguments.integer("--pp", 0, 1, 4096));
  shown.shape.m = static_cast<int>(arguments.integer("--micro-batches", 0, 1, 65536));
  shown.shape.v = static_cast<int>(arguments.integer("--virtual-stages", shown.entry->chunks == Chunks::One ? 1 : 2, 1, 1024));
  shown.costs = parse_costs(arguments);
  static constexpr std::int64_t kMostActions = 20'000'000;
  if (std::int64_t{shown.shape.p} * shown.shape.m * shown.shape.v > kMostActions)
    throw Error(kCommandLine, "--micro-batches", std::to_string(shown.shape.m),
                "at most " + count_text(kMostActions) + " stages times micro-batches");
  if (const auto refused = shown.entry->refuse(shown.shape)) {
    console.err << "foreshard: " << shown.entry->name << ": " << refused->reason << "\n";
    for (const std::string& change : refused->would_help) console.err << "  would help: " << change << "\n";
    return ExitCode::Infeasible;
  }
  shown.lists = shown.entry->lists(shown.shape);
  shown.timing = evaluate_shown(shown);
  shown.in_flight = peak_in_flight(shown.lists);
  console.out << (arguments.flag("--json") ? as_json(shown) : as_text(shown));
  return ExitCode::Ok;
}

Verb show_schedule_verb() {
  return {.name = "show schedule",
          .summary = "Prints the action lists of a pipeline schedule, a picture, makespan, idle and in-flight counts.",
          .notes = "Times are those of one micro-batch on one rank, in any unit; with virtual stages each takes its share.",
          .examples = {"foreshard show schedule 1f1b --pp 4 --micro-batches 8",
                       "foreshard show schedule interleaved-1f1b --pp 2 --micro-batches 4 --virtual-stages 2"},
          .options = {{.name = "NAME", .value = "NAME", .help = "a schedule of \"foreshard list schedules\"", .required = true},
                      {.name = "--pp", .value = "P", .help = "pipeline ranks", .required = true},
                      {.name = "--micro-batches", .value = "M", .help = "micro-batches per iteration", .required = true},
                      {.name = "--virtual-stages", .value = "V", .help = "stages per rank, for interleaved schedules"},
                      {.name = "--times", .value = "F,I,W", .help = "forward, input gradient, weight gradient (default 1,1,1)"},
                      {.name = "--latency", .value = "C", .help = "time of a transfer between two ranks (default 0)"},
                      {.name = "--json", .help = "print JSON"}},
          .run = run};
}

}  // namespace foreshard
