#include "cli/parts/search_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "cli/job/notes.h"
#include "cli/job/unchanged.h"
#include "cli/job/workers.h"
#include "cli/program/interrupt.h"
#include "core/base/error.h"
#include "core/cluster/cluster_slice.h"
#include "core/strategy/strategy_options.h"
#include "sim/simulate.h"
#include "strategy/resolve/resolve.h"
#include "strategy/search/search_relax.h"
#include "strategy/tune/tune.h"

namespace foreshard {

static constexpr double kSearchShare = 0.8;  // share of the progress bar; the rest is simulation

// "tp=8" or "strategy.tp=8".
static std::string fix(Strategy& strategy, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  const std::size_t begin = setting.starts_with("strategy.") ? 9 : 0;
  if (equals == std::string::npos || equals <= begin)
    throw Error(kCommandLine, "--fix", "\"" + setting + "\"",
                "PATH=VALUE with one of " + joined(searched_options()) + ", policy");
  std::string path = setting.substr(begin, equals - begin);
  std::vector<std::string> known = searched_options();
  known.emplace_back("policy");  // no search varies it
  if (std::find(known.begin(), known.end(), path) == known.end()) {
    const std::string nearest = nearest_name(path, known);
    throw Error(kCommandLine, "--fix", "\"" + path + "\"",
                "one of " + joined(known) + (nearest.empty() ? "" : " (nearest: " + nearest + ")"));
  }
  set_option(strategy, path, setting.substr(equals + 1), kCommandLine);
  return path;
}

// The path of an option that --try names as on the command line or in a file: compress-activations, compress_activations.
static std::string read_tried(const Arguments& arguments, std::string name, const Strategy& base) {
  const std::string said = name;
  std::ranges::replace(name, '-', '_');
  std::vector<std::string> known;
  for (const TriedOption& option : tried_options()) known.push_back(option.path);
  if (std::ranges::find(known, name) == known.end())
    throw Error(kCommandLine, "--try", "\"" + said + "\"", "one of " + joined(known));
  const StrategyOption& option = *find_option(name);
  if (arguments.has(option.flag) || option.get(base) != option.get(Strategy{}))
    throw Error(kCommandLine, "--try", "\"" + said + "\"", "no " + option.flag + " beside it");
  return name;
}

Job read_search_job(const Arguments& arguments) {
  Job job = read_job(arguments);
  const auto wanted = arguments.integer("--gpus", gpu_count(job.cluster), 1, INT32_MAX);
  if (node_count(job.cluster) == 1 && wanted < gpu_count(job.cluster))
    job.cluster = with_first_gpus(std::move(job.cluster), static_cast<int>(wanted));
  if (arguments.has("--gpus") && wanted != gpu_count(job.cluster))
    throw Error(kCommandLine, "--gpus", arguments.text("--gpus"),
                "whole nodes or a part of one: all GPUs of a cluster are used");
  return job;
}

// Throws Error for settings that `simulate` chooses for one strategy and a search does not.
static void expect_searchable(const Strategy& base) {
  if (chooses_parts(base))
    throw Error(kCommandLine, "parts", "auto", "numbers of parts: they are chosen for one strategy, by simulate");
  if (chooses_buckets(base)) throw Error(kCommandLine, "bucket", "auto", "a size: it is chosen for one strategy, by simulate");
}

SearchOptions read_search_options(const Arguments& arguments, const Job& job) {
  if (!job.strategy.stages.empty())
    throw Error(kCommandLine, "--stages", to_text(job.strategy.stages), "no stages: search finds them");
  SearchOptions options{.base = job.strategy};
  options.profile = job.measured();
  for (const std::string& path : searched_options()) {
    const StrategyOption* option = find_option(path);
    if (option && !option->flag.empty() && arguments.has(option->flag)) options.fixed.push_back(path);
  }
  for (const std::string& setting : arguments.all("--set"))
    for (const std::string& path : searched_options())
      if (setting.starts_with("strategy." + path + "=") || setting.starts_with("strategy." + path + "."))
        options.fixed.push_back(path);
  const auto is_fixed = [&](const std::string& path) { return std::ranges::find(options.fixed, path) != options.fixed.end(); };
  if (options.base.policy != Strategy{}.policy)
    options.fixed.emplace_back("policy");  // the values in a strategy file hold for these two
  if (options.base.offload != OffloadChoice{} && !is_fixed("offload_optimizer"))
    options.fixed.emplace_back("offload_optimizer");
  if (arguments.has("--gpus") && !arguments.has("--dp")) options.base.dp = 0;
  for (const std::string& setting : arguments.all("--fix")) {
    const std::string path = fix(options.base, setting);
    if (is_fixed(path)) throw Error(kCommandLine, "--fix", "\"" + setting + "\"", path + " once: it is fixed already");
    options.fixed.push_back(path);
  }
  for (const std::string& list : arguments.all("--try")) {
    std::istringstream names(list);
    for (std::string name; std::getline(names, name, ',');) options.tries.push_back(read_tried(arguments, name, options.base));
  }
  expect_searchable(options.base);
  if (options.base.batch.global <= 0)
    throw Error(kCommandLine, "--global-batch", arguments.text("--global-batch", "nothing"),
                "the number of sequences per step, which every strategy has to keep");
  const std::string objective = arguments.choice("--objective", "time", objective_names());
  for (std::size_t i = 0; i < objective_names().size(); ++i)
    if (objective_names()[i] == objective) options.objective = static_cast<Objective>(i);
  options.max_tp = static_cast<int>(arguments.integer("--max-tp", 0, 1, 1'000'000));
  if (options.max_tp > 0 && std::ranges::find(options.fixed, "tp") != options.fixed.end())
    throw Error(kCommandLine, "--max-tp", arguments.text("--max-tp"), "no fixed tp beside it");
  options.threads = read_threads(arguments);
  options.refine = static_cast<int>(arguments.integer("--refine", options.refine, 1, 100'000));
  options.shortlist = std::max(options.shortlist, 4 * options.refine);
  options.prune = !arguments.flag("--no-prune");
  options.noise = arguments.number("--noise", 100 * options.noise, 0, 50) / 100;
  options.cancel = &watch_interrupt();
  return options;
}

int read_threads(const Arguments& arguments) {
  const auto asked = static_cast<int>(arguments.integer("--threads", 0, 0, 1024));
  return asked > 0 ? asked : one_per_core();
}

int read_top(const Arguments& arguments) { return static_cast<int>(arguments.integer("--top", 5, 0, 10'000)); }

std::vector<VerbOption> search_run_options() {
  const std::string group = "search";
  std::vector<std::string> tried;
  for (const TriedOption& option : tried_options()) tried.push_back(option.path);
  return {{.name = "--objective", .value = "NAME", .help = joined(objective_names()) + " (default time)", .group = group},
          {.name = "--fix",
           .value = "PATH=VALUE",
           .help = "fixes an option that the search would vary, such as tp=8; may be repeated",
           .group = group,
           .repeatable = true},
          {.name = "--try",
           .value = "NAME,...",
           .help = "varies these options, too, for the best strategies: " + joined(tried) +
                   "; compressed sums change what is trained",
           .group = group,
           .repeatable = true},
          {.name = "--max-tp", .value = "N", .help = "no tensor-parallel degree above N", .group = group},
          {.name = "--refine", .value = "N", .help = "refine the N best that fit (default 48)", .group = group},
          {.name = "--top", .value = "N", .help = "simulate the N best (default 5)", .group = group},
          {.name = "--noise",
           .value = "PERCENT",
           .help = "smaller differences do not count: the simpler strategy ranks first, and of twins (same degrees and "
                   "micro-batch, no less memory) one is listed (default 0.3; 0: all counts)",
           .group = group},
          {.name = "--no-prune", .help = "look at every strategy; the winner is the same", .group = group},
          {.name = "--threads", .value = "N", .help = "threads and worker processes (default: one per core)", .group = group}};
}

static void add_failed(std::vector<FailedCandidate>& all, const Strategy& strategy, const std::string& why) {
  const auto known = std::ranges::find(all, why, &FailedCandidate::why);
  if (known == all.end())
    all.push_back({.strategy = strategy, .why = why, .candidates = 1});
  else
    ++known->candidates;
}

std::vector<std::optional<double>> simulate_all(const Job& job, const std::vector<const Candidate*>& candidates, int processes,
                                                std::vector<FailedCandidate>& failed,
                                                const std::function<void(double)>& progress) {
  std::size_t done = 0;
  std::vector<std::size_t> broken;
  const auto seconds = [&](std::size_t i) {
    const auto answer =
        tuned_plan(job.model, job.cluster, candidates[i]->strategy, {.ignore_memory = true, .profile = job.measured()});
    const Result result = simulate(std::get<Lowered>(answer).plan, job.cluster, {.granularity = Granularity::Stage});
    return result.period_s > 0 ? result.period_s : result.makespan_s;
  };
  WorkerOptions options{.processes = processes, .stop = interrupted};
  options.finished = [&](std::size_t) {
    if (progress) progress(static_cast<double>(++done) / static_cast<double>(candidates.size()));
  };
  options.failed = [&](std::size_t i, const Bug& bug) {
    broken.push_back(i);
    add_failed(failed, candidates[i]->strategy, bug.what());
  };
  auto all = in_workers(candidates.size(), seconds, options);
  for (const std::size_t i : broken) all[i] = std::numeric_limits<double>::quiet_NaN();
  return all;
}

std::vector<std::string> varied_options(const SearchOptions& options) {
  std::vector<std::string> varied;
  for (const std::string& path : searched_options())
    if (std::find(options.fixed.begin(), options.fixed.end(), path) == options.fixed.end()) varied.push_back(path);
  return varied;
}

void say_varied(const Arguments& arguments, const Console& console, const SearchOptions& options) {
  const std::vector<std::string> flags = set_by_file_only(arguments, varied_options(options));
  if (!flags.empty())
    say(arguments, console,
        "--strategy " + arguments.text("--strategy") + ": the search varies its " + joined(flags) +
            " all the same; given on the command line they are fixed");
}

std::variant<SearchResult, Infeasible> run_search(const Job& job, const SearchOptions& options, int top) {
  if (top > 0) expect_simgrid("search", "--top 0 ranks on the light clock alone");
  SearchOptions first = options;
  if (options.progress) first.progress = [&](double fraction) { options.progress(kSearchShare * fraction); };
  auto answer = search(job.model, job.cluster, first);
  if (auto* empty = std::get_if<Infeasible>(&answer)) {
    if (!interrupted())
      for (std::string& change : relaxations(job.model, job.cluster, options)) empty->would_help.push_back(std::move(change));
    return answer;
  }
  SearchResult& result = std::get<SearchResult>(answer);
  rerank(result.ranked, top, options.objective, options.noise, [&](const std::vector<const Candidate*>& next) {
    auto seconds = simulate_all(job, next, options.threads, result.failed, [&](double fraction) {
      if (options.progress) options.progress(kSearchShare + (1 - kSearchShare) * fraction);
    });
    for (std::size_t i = 0; options.found && i < next.size(); ++i) {
      Candidate played = *next[i];
      played.simulated = seconds[i];
      if (played.simulated && !std::isnan(*played.simulated)) options.found(played);
    }
    return seconds;
  });
  if (result.ranked.empty()) throw Bug(result.failed.front().why + " in the simulation of every strategy found");
  result.interrupted |= interrupted();
  return answer;
}

}  // namespace foreshard
