// foreshard simulate: lowers, simulates, summarizes and prints. A strategy that does not fit is not simulated: the output has its
// memory, the reason and what would help. With --ignore-memory it is simulated like any other.
#include "sim/simulate.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ostream>
#include <utility>

#include "cli/job/interval.h"
#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/job/prepared.h"
#include "cli/job/profile.h"
#include "cli/parts/allocation_words.h"
#include "cli/parts/policy_table.h"
#include "cli/program/interrupt.h"
#include "cli/program/progress.h"
#include "cli/program/separate_files.h"
#include "cli/program/terminal.h"
#include "core/base/error.h"
#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_settings.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "core/result/order_bound.h"
#include "replay/light_clock.h"
#include "report/export/chrome_trace.h"
#include "report/pictures/svg.h"
#include "report/summary/memory_rows.h"
#include "report/summary/summarize.h"
#include "report/summary/summary_json.h"
#include "report/tables/summary_text.h"
#include "report/words/text_table.h"
#include "strategy/cost/runtime_policy.h"

namespace foreshard {

static const std::vector<std::string> kWritten = {"--save-plan", "--save-strategy", "--save-result", "--trace", "--svg"};

// "17=1.25": computes of rank 17 take 1.25 times as long.
static std::vector<Straggler> stragglers_of(const Arguments& arguments) {
  std::vector<Straggler> stragglers;
  for (const std::string& text : arguments.all("--straggler")) {
    const char *begin = text.data(), *end = begin + text.size();
    Straggler straggler;
    const auto rank = std::from_chars(begin, end, straggler.rank.value);
    const bool has_rank = rank.ec == std::errc() && rank.ptr != end && *rank.ptr == '=' && straggler.rank.value >= 0;
    const auto factor = std::from_chars(has_rank ? rank.ptr + 1 : end, end, straggler.slowdown);
    if (!has_rank || factor.ec != std::errc() || factor.ptr != end || !(straggler.slowdown > 0 && straggler.slowdown <= 1e6))
      throw Error(kCommandLine, "--straggler", "\"" + text + "\"",
                  "RANK=FACTOR with a factor above 0 and at most 1e6, such as 17=1.25");
    if (std::ranges::any_of(stragglers, [&](const Straggler& other) { return other.rank == straggler.rank; }))
      throw Error(kCommandLine, "--straggler", "\"" + text + "\"", "each rank once");
    if (straggler.slowdown == 1)
      throw Error(kCommandLine, "--straggler", "\"" + text + "\"", "another factor than 1, which is the speed of all ranks");
    stragglers.push_back(straggler);
  }
  return stragglers;
}

static bool on_light_clock(const Arguments& arguments) {
  return arguments.choice("--clock", "simgrid", {"simgrid", "light"}) == "light";
}

static SimulateOptions simulate_options(const Arguments& arguments) {
  SimulateOptions options;
  const std::string granularity = arguments.choice("--granularity", "layer", {"op", "layer", "stage"});
  options.granularity = granularity == "op"      ? Granularity::Op
                        : granularity == "layer" ? Granularity::Layer
                                                 : Granularity::Stage;
  if (!on_light_clock(arguments)) expect_simgrid("simulate", "--clock light gives the same times");
  const std::string folding = arguments.choice("--folding", "full", {"none", "tp", "full"});
  options.folding = folding == "none" ? Folding::None : folding == "tp" ? Folding::Tp : Folding::Full;
  options.memory_events = arguments.has("--svg") || arguments.has("--trace");
  options.stragglers = stragglers_of(arguments);
  options.cancel = &watch_interrupt();
  return options;
}

static std::optional<PredictionInterval> interval_of(const Prepared& prepared, const Plan& plan, Seconds predicted) {
  if (prepared.profile && prepared.profile->learned)
    return learned_interval(&*prepared.profile, {.plan = plan, .strategy = prepared.strategy}, prepared.cluster, predicted);
  const bool experts = std::ranges::any_of(plan.tensors, [](const Tensor& tensor) { return tensor.grid == Grid::Expert; });
  return interval_of(prepared.cluster, prepared.strategy, experts, predicted);
}

static std::string in_json(const PredictionInterval& interval) {
  JsonWriter json(0);
  json.begin_object().field("low_s", interval.low.value).field("high_s", interval.high.value);
  json.field("rows", interval.rows).field("extrapolated", interval.extrapolated);
  return json.field("basis", interval.basis).end_object().text();
}

static std::string in_json(const std::vector<std::string>& notes) {
  JsonWriter json(0);
  json.begin_array();
  for (const std::string& note : notes) json.value(note);
  return json.end_array().text();
}

// Plan and result files have in their origin what was said of them.
static void save_files(const Arguments& arguments, Result& result, const Summary& summary, const Prepared& prepared,
                       const std::vector<std::string>& notes) {
  const auto said = [&](const char* key, const std::string& json) {
    std::string& origin = result.plan.origin;
    origin = with_json_value(origin.empty() ? "{}" : origin, key, json, "origin");
  };
  if (summary.prediction_interval) said("prediction_interval", in_json(*summary.prediction_interval));
  said("verdict", to_json(summary.verdict));
  if (!notes.empty()) said("notes", in_json(notes));
  if (arguments.has("--cluster")) result.plan.origin = with_cluster_file(result.plan.origin, arguments.text("--cluster"));
  if (arguments.has("--save-strategy")) write_file(arguments.text("--save-strategy"), to_json(prepared.strategy));
  if (arguments.has("--save-plan")) save_plan(result.plan, arguments.text("--save-plan"));
  if (arguments.has("--save-result")) save_result(result, arguments.text("--save-result"));
  if (arguments.has("--trace")) write_file(arguments.text("--trace"), chrome_trace(result));
  if (arguments.has("--svg"))
    write_file(arguments.text("--svg"), timeline_svg(result, summary,
                                                     {.title = prepared.model + " on " + prepared.cluster.name,
                                                      .subtitle = joined(headline(prepared.strategy))}));
}

static ExitCode answer_refused(const Arguments& arguments, const Refused& refused, const Console& console) {
  Summary summary;
  summary.feasible = false;
  summary.infeasible_reason = refused.why.reason;
  summary.would_help = refused.why.would_help;
  if (arguments.flag("--json"))
    console.out << summary_json(
        summary, {.model = refused.model, .cluster = refused.cluster, .strategy_json = to_json(refused.strategy)});
  else
    complain(refused.why, console);
  return ExitCode::Infeasible;
}

static void say_notes(const Arguments& arguments, const Prepared& prepared, const Plan& plan, const Console& console) {
  if (prepared.say_without_effect) prepared.say_without_effect(plan);
  if (!prepared.profile) return;
  if (const std::string note = profile_note(*prepared.profile, prepared.cluster); !note.empty()) say(arguments, console, note);
}

// Moves the plan into the result. What does not depend on times is computed while the simulation runs.
static Result play(const Arguments& arguments, SimulateOptions options, Prepared& prepared, std::vector<Bytes>& bounds,
                   const Console& console) {
  Progress progress(arguments.choice("--progress", "auto", progress_modes()), console);
  options.progress = [&](double fraction) { progress.report(fraction); };
  const auto meanwhile = [&](const Plan& plan) {
    if (!arguments.has("--plan")) expect_sound(plan);
    say_notes(arguments, prepared, plan, console);
    bounds = order_bounds(plan);
  };
  if (!on_light_clock(arguments)) return simulate(std::move(prepared.plan), prepared.cluster, options, meanwhile);
  meanwhile(prepared.plan);
  player::LightClock clock;
  Result result = replay(prepared.plan, prepared.cluster, clock, options);
  result.plan = std::move(prepared.plan);
  return result;
}

static double makespan(const Arguments& arguments, const Plan& plan, const Cluster& cluster, SimulateOptions options,
                       int runs) {
  options.memory = options.memory_events = false, options.runs = runs;
  return on_light_clock(arguments) ? makespan_of(plan, cluster, options) : simulate(plan, cluster, options).makespan_s;
}

// The time per iteration without a barrier between iterations: what each of the second half adds to the total.
static double steady_period(const Arguments& arguments, const Result& result, const Cluster& cluster,
                            const SimulateOptions& options) {
  const auto iterations = static_cast<int>(arguments.integer("--iterations", 1, 1, 1000));
  if (result.period_s > 0) return iterations == 1 ? result.period_s : steady_period(result.plan, cluster, options, iterations);
  if (iterations == 1) return result.makespan_s;
  const int half = iterations / 2;
  const double before = half == 1 ? result.makespan_s : makespan(arguments, result.plan, cluster, options, half);
  return (makespan(arguments, result.plan, cluster, options, iterations) - before) / (iterations - half);
}

static void judge_memory(Summary& summary, const Prepared& prepared) {
  judge(summary, prepared.verdict);
  summary.would_help = prepared.would_help;
}

static std::string as_text(const Summary& summary, const Prepared& prepared) {
  return summary_text(summary,
                      {.model = prepared.model,
                       .cluster = prepared.cluster.name,
                       .strategy = headline(prepared.strategy),
                       .counts_tokens = prepared.workload.tokens_per_sample > 0},
                      {.unicode = terminal_takes_unicode()}) +
         allocation_text(prepared);
}

// The memory of a plan that does not fit, without simulating it.
static ExitCode answer_too_large(const Arguments& arguments, Prepared& prepared, const Console& console) {
  if (!arguments.has("--plan")) expect_sound(prepared.plan);
  say_notes(arguments, prepared, prepared.plan, console);
  const Result unplayed{.plan = std::move(prepared.plan)};
  Summary summary = summarize(unplayed, prepared.cluster, prepared.workload, order_bounds(unplayed.plan));
  judge_memory(summary, prepared);
  for (const std::string& option : kWritten)
    if (arguments.has(option)) say(arguments, console, option + " writes nothing: --ignore-memory plays it");
  const bool online = arguments.flag("--caching-allocator");
  if (arguments.flag("--json"))
    console.out << summary_json(summary, {.model = prepared.model,
                                          .cluster = prepared.cluster.name,
                                          .strategy_json = to_json(prepared.strategy),
                                          .framework_allocation_json = allocation_json(prepared),
                                          .caching_allocator_json = online ? caching_allocator_json(unplayed.plan) : ""});
  else
    console.out << as_text(summary, prepared) << (online ? caching_allocator_text(unplayed.plan) : "");
  return ExitCode::Infeasible;
}

static bool does_not_fit(const Prepared& prepared) { return prepared.verdict.kind == Verdict::Kind::DoesNotFit; }

static PolicyRow row_of_policy(const RuntimePolicy& policy, const Arguments& all, const SimulateOptions& options,
                               const Console& console) {
  const Arguments arguments = all.with("--policy", policy.name);
  PolicyRow row{.name = policy.name, .of = policy.of};
  auto answer =
      prepare(arguments, console, {.kind = WorkKind::Simulate, .granularity = options.granularity, .folding = options.folding});
  if (const auto* refused = std::get_if<Refused>(&answer)) {
    row.why_not = refused->why.reason;
    return row;
  }
  Prepared& prepared = std::get<Prepared>(answer);
  prepared.say_without_effect = {};
  if (does_not_fit(prepared) && !arguments.flag("--ignore-memory")) {
    row.why_not = prepared.verdict.reason;
    return row;
  }
  row.traffic = policy_traffic(prepared.plan);
  std::vector<Bytes> bounds;
  const Result result = play(arguments, options, prepared, bounds, console);
  row.summary = summarize(result, prepared.cluster, prepared.workload, bounds);
  return row;
}

static ExitCode run_all_policies(const Arguments& arguments, const SimulateOptions& options, const Console& console) {
  for (const std::string& option : kWritten)
    if (arguments.has(option)) throw Error(kCommandLine, option, "a file", "one policy: --policy NAME instead of all");
  if (arguments.has("--plan")) throw Error(kCommandLine, "--policy", "all", "a job instead of --plan: a plan has its policy");
  std::vector<PolicyRow> rows;
  bool bug = false;
  for (const RuntimePolicy& policy : runtime_policies()) try {
      rows.push_back(row_of_policy(policy, arguments, options, console));
    } catch (const Bug& met) {
      bug = true;
      rows.push_back({.name = policy.name, .of = policy.of, .why_not = std::string("internal error: ") + met.what()});
    }
  const bool tokens = std::ranges::any_of(rows, [](const PolicyRow& row) { return row.summary.tokens_per_s > 0; });
  console.out << (arguments.flag("--json") ? policy_table_json(rows)
                                           : policy_table_text(rows, tokens, terminal_takes_unicode()));
  const bool any = std::ranges::any_of(rows, [](const PolicyRow& row) { return row.why_not.empty(); });
  return bug ? ExitCode::Bug : any ? ExitCode::Ok : ExitCode::Infeasible;
}

static std::string steady_text(const Summary& summary, const Plan& plan, double makespan_s) {
  if (has_steady_period(plan))
    return "\nThe iteration time is the steady period: an iteration begins while the one before it drains, and the shares "
           "above are of that\n"
           "period. The first iteration fills the pipeline: by itself, filled and drained, one takes " +
           in_time({makespan_s}) + ".\n";
  if (summary.iteration_time.value == makespan_s) return "";
  return "\nThe iteration time is the period of iterations without a barrier between them; one by itself takes " +
         in_time({makespan_s}) + ", of which the shares above are.\n";
}

static ExitCode run_simulate(const Arguments& arguments, const Console& given) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> notes;
  Console console = given;
  console.notes = &notes;
  const SimulateOptions options = simulate_options(arguments);
  expect_separate_files(arguments, {"--plan", "--model", "--cluster", "--strategy", "--profile"}, kWritten);
  expect_folders(arguments, kWritten);
  if (arguments.text("--policy") == "all") return run_all_policies(arguments, options, console);
  auto answer =
      prepare(arguments, console, {.kind = WorkKind::Simulate, .granularity = options.granularity, .folding = options.folding});
  if (const auto* refused = std::get_if<Refused>(&answer)) return answer_refused(arguments, *refused, console);
  Prepared& prepared = std::get<Prepared>(answer);
  if (does_not_fit(prepared) && !arguments.flag("--ignore-memory")) return answer_too_large(arguments, prepared, console);
  std::vector<Bytes> bounds;
  Result result = play(arguments, options, prepared, bounds, console);
  const double makespan_s = result.makespan_s;
  const double period_s = steady_period(arguments, result, prepared.cluster, options);
  (has_steady_period(result.plan) ? result.period_s : result.makespan_s) = period_s;
  Summary summary = summarize(result, prepared.cluster, prepared.workload, bounds);
  result.makespan_s = makespan_s;
  summary.prediction_interval = interval_of(prepared, result.plan, summary.iteration_time);
  judge_memory(summary, prepared);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  save_files(arguments, result, summary, prepared, notes);
  const bool online = arguments.flag("--caching-allocator");
  if (arguments.flag("--json"))
    console.out << summary_json(summary, {.model = prepared.model,
                                          .cluster = prepared.cluster.name,
                                          .strategy_json = to_json(prepared.strategy),
                                          .wall_time_s = wall.count(),
                                          .makespan_s = makespan_s,
                                          .clock = on_light_clock(arguments) ? "light" : "simgrid",
                                          .simgrid_events = result.engine_events,
                                          .granularity = result.granularity,
                                          .folding = result.folding,
                                          .framework_allocation_json = allocation_json(prepared),
                                          .caching_allocator_json = online ? caching_allocator_json(result.plan) : ""});
  else
    console.out << as_text(summary, prepared) << (online ? caching_allocator_text(result.plan) : "")
                << steady_text(summary, result.plan, makespan_s);
  return ExitCode::Ok;
}

static std::vector<VerbOption> simulate_run_options() {
  const std::string simulation = "simulation", output = "output";
  return {
      {.name = "--ignore-memory", .help = "play it even when it does not fit", .group = "memory"},
      {.name = "--as-given",
       .help = "answer for the strategy as given, even where no degree was given and it does not fit",
       .group = "memory"},
      {.name = "--caching-allocator",
       .help = "what PyTorch's caching allocator would reserve for the plan's blocks",
       .group = "memory"},
      {.name = "--granularity",
       .value = "LEVEL",
       .help = "op, layer or stage: how far segments are expanded (default layer)",
       .group = simulation},
      {.name = "--folding",
       .value = "LEVEL",
       .help = "none, tp or full: identical ranks played by one (default full)",
       .group = simulation},
      {.name = "--iterations",
       .value = "K",
       .help = "plays K iterations without a barrier between them; the iteration time is then the steady period (default 1)",
       .group = simulation},
      {.name = "--clock",
       .value = "NAME",
       .help = "simgrid, or light: the clock of search, which needs no SimGrid; the same times (default simgrid)",
       .group = simulation},
      {.name = "--straggler",
       .value = "RANK=FACTOR",
       .help = "computes of this rank take FACTOR times as long; may be repeated",
       .group = simulation,
       .repeatable = true},
      {.name = "--trace", .value = "FILE", .help = "write a Chrome trace, to open in Perfetto", .group = output},
      {.name = "--svg", .value = "FILE", .help = "write the timeline and the memory curve as a picture", .group = output},
      {.name = "--save-plan", .value = "FILE", .help = "write the plan", .group = output},
      {.name = "--save-strategy", .value = "FILE", .help = "write the strategy with all defaults resolved", .group = output},
      {.name = "--save-result", .value = "FILE", .help = "write plan, trace and memory peaks", .group = output},
      {.name = "--json", .help = "print JSON", .group = output},
      progress_option(output)};
}

Verb simulate_verb() {
  Verb verb = {.name = "simulate",
               .summary = "Simulates one iteration of training: time, bubbles with their causes, memory, links.",
               .examples = {"foreshard simulate --model gpt3-175b --cluster dgx-a100-x128 --tp 8 --pp 16 --dp 8 "
                            "--global-batch 1536",
                            "foreshard simulate --model llama-3-8b --cluster dgx-h100 --tp 2 --zero 1 --global-batch 64 "
                            "--svg timeline.svg"},
               .options = job_options(),
               .run = run_simulate};
  for (VerbOption& option : verb.options) {
    option.required = false;  // --plan replaces the options of a job
    if (option.name == "--policy") option.help += "; all: every policy, side by side";
  }
  verb.options.push_back(force_option());
  verb.options.push_back({.name = "--plan", .value = "FILE", .help = "simulate a saved plan instead of a job"});
  const std::vector<VerbOption> more = simulate_run_options();
  verb.options.insert(verb.options.end(), more.begin(), more.end());
  return verb;
}

}  // namespace foreshard
