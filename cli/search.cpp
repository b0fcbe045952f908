// foreshard search: the best strategies for a model on a cluster; the top is ranked by the simulator.
#include "strategy/search.h"

#include <algorithm>
#include <chrono>
#include <ostream>

#include "cli/interrupt.h"
#include "cli/job.h"
#include "cli/progress.h"
#include "cli/search_output.h"
#include "core/error.h"
#include "core/json.h"
#include "core/strategy_options.h"
#include "sim/simulate.h"

namespace foreshard {

// "tp=8" or "strategy.tp=8".
static std::string fix(Strategy& strategy, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  const std::size_t begin = setting.starts_with("strategy.") ? 9 : 0;
  if (equals == std::string::npos || equals <= begin)
    throw Error(kCommandLine, "--fix", "\"" + setting + "\"", "PATH=VALUE with one of " + joined(searched_options()));
  const std::string path = setting.substr(begin, equals - begin);
  const auto& known = searched_options();
  if (std::find(known.begin(), known.end(), path) == known.end()) {
    const std::string nearest = nearest_name(path, known);
    throw Error(kCommandLine, "--fix", "\"" + path + "\"",
                "one of " + joined(known) + (nearest.empty() ? "" : " (nearest: " + nearest + ")"));
  }
  set_option(strategy, path, setting.substr(equals + 1), kCommandLine);
  return path;
}

static SearchOptions options_of(const Arguments& arguments, const Job& job) {
  SearchOptions options{.base = job.strategy};
  for (const std::string& path : searched_options()) {
    const StrategyOption* option = find_option(path);
    if (option && !option->flag.empty() && arguments.has(option->flag)) options.fixed.push_back(path);
  }
  for (const std::string& setting : arguments.all("--set"))
    for (const std::string& path : searched_options())
      if (setting.starts_with("strategy." + path + "=") || setting.starts_with("strategy." + path + "."))
        options.fixed.push_back(path);
  if (arguments.has("--gpus") && !arguments.has("--dp")) options.base.dp = 0;
  for (const std::string& setting : arguments.all("--fix")) options.fixed.push_back(fix(options.base, setting));
  if (options.base.global_batch <= 0)
    throw Error(kCommandLine, "--global-batch", "nothing",
                "the number of sequences per step, which every strategy has to keep");
  const std::string objective = arguments.choice("--objective", "time", objective_names());
  for (std::size_t i = 0; i < objective_names().size(); ++i)
    if (objective_names()[i] == objective) options.objective = static_cast<Objective>(i);
  options.max_tp = static_cast<int>(arguments.integer("--max-tp", 0, 0, 1'000'000));
  options.threads = static_cast<int>(arguments.integer("--threads", 0, 0, 1024));
  options.refine = static_cast<int>(arguments.integer("--refine", options.refine, 1, 100'000));
  options.shortlist = std::max(options.shortlist, 4 * options.refine);
  options.prune = !arguments.flag("--no-prune");
  options.cancel = &watch_interrupt();
  return options;
}

static Lowered lowered(const Job& job, const Strategy& strategy) {
  return std::get<Lowered>(lower(job.model, job.cluster, strategy, {.ignore_memory = true}));
}

// One after the other: the simulator's engine is one per process.
static void simulate_top(SearchResult& result, const Job& job, const SearchOptions& options, int top) {
  rerank(result.ranked, top, options.objective, [&](const Candidate& candidate) -> std::optional<double> {
    if (interrupted()) return {};
    return simulate(lowered(job, candidate.strategy).plan, job.cluster, {.granularity = Granularity::Stage}).makespan_s;
  });
}

static void save(const Arguments& arguments, const Job& job, const SearchResult& result) {
  if (!arguments.has("--save-strategy") && !arguments.has("--save-plan")) return;
  const auto rank = arguments.integer("--rank", 1, 1, static_cast<std::int64_t>(result.ranked.size()));
  const Strategy& strategy = result.ranked[static_cast<std::size_t>(rank) - 1].strategy;
  if (arguments.has("--save-strategy")) write_file(arguments.text("--save-strategy"), to_json(strategy));
  if (arguments.has("--save-plan")) save_plan(lowered(job, strategy).plan, arguments.text("--save-plan"));
}

static ExitCode run(const Arguments& arguments, const Console& console) {
  const auto begin = std::chrono::steady_clock::now();
  const Job job = read_job(arguments);
  if (arguments.has("--gpus") && arguments.integer("--gpus", 0, 1, 100'000'000) != gpu_count(job.cluster))
    throw Error(kCommandLine, "--gpus", arguments.text("--gpus"), "whole nodes: search uses all GPUs of a cluster");
  SearchOptions options = options_of(arguments, job);
  const int rows = static_cast<int>(arguments.integer("--rows", 10, 1, 100'000));
  const int top = static_cast<int>(arguments.integer("--top", 5, 0, 10'000));
  std::optional<Progress> progress(std::in_place, arguments.choice("--progress", "auto", progress_modes()), console);
  options.progress = [&](double fraction) { progress->report(fraction); };
  auto answer = search(job.model, job.cluster, options);
  if (auto* empty = std::get_if<Infeasible>(&answer)) {
    progress.reset();
    if (arguments.flag("--json"))
      console.out << infeasible_json(*empty);
    else
      complain(*empty, console);
    return ExitCode::Infeasible;
  }
  SearchResult& result = std::get<SearchResult>(answer);
  simulate_top(result, job, options, top);
  result.interrupted |= interrupted();
  progress.reset();
  save(arguments, job, result);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  if (arguments.flag("--json"))
    console.out << search_json(result, job, options, rows, wall.count());
  else if (arguments.flag("--csv"))
    console.out << search_csv(result, rows);
  else
    console.out << search_text(result, job, options, rows);
  return result.interrupted ? ExitCode::Interrupted : ExitCode::Ok;
}

Verb search_verb() {
  const std::string group = "search", output = "output";
  Verb verb = {
      .name = "search",
      .summary = "Finds the best strategies for a model on a cluster.",
      .notes = "Options of the strategy that are given keep their value; what a search varies is: " +
               joined(searched_options()) + ".",
      .examples = {"foreshard search --model gpt3-175b --cluster dgx-a100-x64 --global-batch 1536",
                   "foreshard search --model llama-2-13b --cluster dgx-h100-x4 --global-batch 512 --fix zero=1 --json"},
      .options = job_options(),
      .run = run};
  const std::vector<VerbOption> more = {
      {.name = "--objective", .value = "NAME", .help = joined(objective_names()) + " (default time)", .group = group},
      {.name = "--fix",
       .value = "PATH=VALUE",
       .help = "keeps a searched option: tp=8; may be repeated",
       .group = group,
       .repeatable = true},
      {.name = "--max-tp", .value = "N", .help = "no tensor-parallel degree above N", .group = group},
      {.name = "--refine", .value = "N", .help = "refine the N best that fit (default 48)", .group = group},
      {.name = "--top", .value = "N", .help = "simulate the N best (default 5)", .group = group},
      {.name = "--no-prune", .help = "look at every strategy; the winner is the same", .group = group},
      {.name = "--threads", .value = "N", .help = "threads (default: one per core)", .group = group},
      {.name = "--rows", .value = "N", .help = "how many strategies to print (default 10)", .group = output},
      {.name = "--rank", .value = "N", .help = "which one to save (default 1)", .group = output},
      {.name = "--save-strategy", .value = "FILE", .help = "write its strategy", .group = output},
      {.name = "--save-plan", .value = "FILE", .help = "write its plan", .group = output},
      {.name = "--json", .help = "print JSON", .group = output},
      {.name = "--csv", .help = "print CSV", .group = output},
      {.name = "--progress",
       .value = "HOW",
       .help = "auto (a bar on a terminal), json (lines on standard error) or none",
       .group = output}};
  verb.options.insert(verb.options.end(), more.begin(), more.end());
  return verb;
}

}  // namespace foreshard
