// foreshard search: the best strategies for a model on a cluster, the top ones ranked by simulation. With several clusters: quotes.
#include "strategy/search/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <ostream>

#include "cli/job/effort.h"
#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/job/profile.h"
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
#include "strategy/tune/tune.h"

namespace foreshard {

static void save(const Arguments& arguments, const Job& job, const SearchResult& result) {
  if (!arguments.has("--save-strategy") && !arguments.has("--save-plan")) return;
  const auto rank = arguments.integer("--rank", 1, 1, static_cast<std::int64_t>(result.ranked.size()));
  const Strategy& strategy = result.ranked[static_cast<std::size_t>(rank) - 1].strategy;
  if (arguments.has("--save-strategy")) write_file(arguments.text("--save-strategy"), to_json(strategy));
  if (arguments.has("--save-plan")) {
    const auto answer = tuned_plan(job.model, job.cluster, strategy,
                                   {.ignore_memory = true, .profile = job.measured(), .settings = job.settings});
    save_plan(std::get<Lowered>(answer).plan, arguments.text("--save-plan"));
  }
}

static ExitCode print_empty(const Infeasible& empty, const Arguments& arguments, const Console& console) {
  const ExitCode code = refuse(empty, arguments, console);
  return interrupted() ? ExitCode::Interrupted : code;
}

static std::vector<std::optional<double>> simulate_sample(const Job& job, SearchResult& result, const SearchOptions& options) {
  std::vector<const Candidate*> all;
  for (const Candidate& candidate : result.sample) all.push_back(&candidate);
  auto seconds = simulate_all(job, all, options.threads, result.failed, {});
  for (std::optional<double>& each : seconds)
    if (each && std::isnan(*each)) each.reset();
  return seconds;
}

static QuoteOptions quote_options(const Arguments& arguments) { return {.tokens = arguments.number("--tokens", 0, 1, 1e18)}; }

static ExitCode run_quotes(const Arguments& arguments, const Console& console) {
  for (const char* option : {"--save-strategy", "--save-plan", "--rank", "--rows", "--residuals"})
    if (arguments.has(option)) throw Error(kCommandLine, option, "several clusters", "one --cluster");
  QuoteOptions how = quote_options(arguments);
  const std::vector<std::string> names = arguments.all("--cluster");
  std::optional<Progress> progress(std::in_place, arguments.choice("--progress", "auto", progress_modes()), console);
  std::optional<std::vector<std::string>> unchanged;
  std::vector<Quote> quotes;
  std::vector<Job> jobs;  // all are read before the first search, so that an error in any is reported at once
  for (const std::string& name : names) {
    const Arguments one = arguments.with("--cluster", name);
    jobs.push_back(read_search_job(one));
    how.objective = read_search_options(one, jobs.back()).objective;
    refuse_large_search(jobs.back(), one);
  }
  ToldSearches searches(console);
  for (const Job& job : jobs) {
    if (interrupted()) {
      quotes.push_back(not_searched(job.cluster.name));
      continue;
    }
    const Arguments one = arguments.with("--cluster", names[quotes.size()]);
    SearchOptions options = read_search_options(one, job);
    options.progress = [&](double fraction) {
      progress->report((static_cast<double>(quotes.size()) + fraction) / static_cast<double>(names.size()));
    };
    say_of_job(one, job, console);
    if (quotes.empty()) say_varied(one, console, options);
    quotes.push_back(quote(job, searches.run(one, job, options), how));
    if (const auto& best = quotes.back().best)
      keep_common(unchanged, without_effect_on_found(one, job, best->strategy, varied_options(options)));
  }
  progress.reset();
  if (!interrupted()) say_all(arguments, console, unchanged.value_or(std::vector<std::string>{}));
  if (arguments.flag("--json"))
    console.out << quotes_json(quotes, how);
  else if (arguments.flag("--csv"))
    console.out << quotes_csv(quotes, how);
  else
    console.out << quotes_text(quotes, how);
  const bool any = std::any_of(quotes.begin(), quotes.end(), [](const Quote& q) { return q.best.has_value(); });
  return interrupted() ? ExitCode::Interrupted : searches.code(any ? ExitCode::Ok : ExitCode::Infeasible);
}

// Reported before the search, not after it.
static void expect_what_is_saved(const Arguments& arguments) {
  const std::vector<std::string> files = {"--save-strategy", "--save-plan"};
  expect_separate_files(arguments, {}, files);
  expect_folders(arguments, files);
  if (!arguments.has("--save-strategy") && !arguments.has("--save-plan"))
    refuse_without(arguments, "--save-strategy or --save-plan", {"--rank"});
  for (const char* format : {"--json", "--csv"})
    if (arguments.has(format) && arguments.has("--residuals"))
      throw Error(kCommandLine, "--residuals", format, "the table: residuals are printed below it");
}

static ExitCode run_search(const Arguments& arguments, const Console& console) {
  watch_interrupt();  // before anything else, so that an early Ctrl-C is handled
  expect_one_format(arguments, {"--json", "--csv"});
  if (arguments.all("--cluster").size() > 1) return run_quotes(arguments, console);
  expect_what_is_saved(arguments);
  const auto begin = std::chrono::steady_clock::now();
  const QuoteOptions training = quote_options(arguments);
  if (training.tokens > 0 && arguments.flag("--csv"))
    throw Error(kCommandLine, "--tokens", "--csv of one cluster", "--json or the table, or several clusters");
  const Job job = read_search_job(arguments);
  if (job.profile)
    if (const std::string note = profile_note(*job.profile, job.cluster); !note.empty()) say(arguments, console, note);
  refuse_large_search(job, arguments);
  say_of_job(arguments, job, console);
  SearchOptions options = read_search_options(arguments, job);
  say_varied(arguments, console, options);
  const int rows = static_cast<int>(arguments.integer("--rows", 10, 1, 100'000));
  std::optional<Progress> progress(std::in_place, arguments.choice("--progress", "auto", progress_modes()), console);
  options.progress = [&](double fraction) { progress->report(fraction); };
  options.found = [&](const Candidate& candidate) { progress->line(candidate_json(job, candidate)); };
  options.sample = static_cast<int>(arguments.integer("--residuals", 0, 1, 10'000));
  ToldSearches searches(console);
  auto answer = run_search(job, options, read_top(arguments));
  if (const auto* empty = std::get_if<Infeasible>(&answer)) {
    progress.reset();
    return print_empty(*empty, arguments, console);
  }
  SearchResult& result = std::get<SearchResult>(answer);
  std::vector<std::optional<double>> simulated;
  if (options.sample > 0) simulated = simulate_sample(job, result, options);
  progress.reset();
  searches.tell(arguments, result);
  if (!result.interrupted)
    say_all(arguments, console,
            without_effect_on_found(arguments, job, result.ranked.front().strategy, varied_options(options)));
  save(arguments, job, result);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  std::optional<Quote> priced;
  if (training.tokens > 0) priced = quote(job, answer, training);
  const auto add_more = [&](JsonWriter& json) {
    write_failed(json.key("failed"), arguments, result.failed);
    if (priced) write_training(json.key("training"), *priced, training);
  };
  if (arguments.flag("--json"))
    console.out << search_json(result, job, options, {.rows = rows, .wall_s = wall.count(), .add = add_more});
  else if (arguments.flag("--csv"))
    console.out << search_csv(result, rows);
  else
    console.out << search_text(result, job, options, rows) << (priced ? training_text(*priced, training) : "");
  if (result.interrupted && arguments.flag("--csv")) console.err << "foreshard: interrupted: the best so far\n";
  if (options.sample > 0) console.out << residuals_text(result, simulated);
  return result.interrupted ? ExitCode::Interrupted : searches.code(ExitCode::Ok);
}

Verb search_verb() {
  const std::string output = "output";
  Verb verb = {
      .name = "search",
      .summary = "Finds the best strategies for a model on a cluster, or compares clusters.",
      .notes = "Strategy options that are given are fixed; the search varies the others of: " + joined(searched_options()) +
               ". With several --cluster the best strategies on each are compared.",
      .examples = {"foreshard search --model gpt3-175b --cluster dgx-a100-x64 --global-batch 1536",
                   "foreshard search --model llama-2-13b --cluster dgx-h100-x4 --global-batch 512 --fix zero=1 --json",
                   "foreshard search --model llama-2-13b --cluster dgx-a100-x4 --cluster dgx-h100-x2 --global-batch 512 "
                   "--tokens 1e12"},
      .options = job_options(),
      .run = run_search};
  for (VerbOption& option : verb.options)
    if (option.name == "--cluster") option.repeatable = true;
  verb.options.push_back(force_option());
  const std::vector<VerbOption> searching = search_run_options();
  verb.options.insert(verb.options.end(), searching.begin(), searching.end());
  const std::vector<VerbOption> more = {
      {.name = "--tokens", .value = "N", .help = "time, cost and energy of a training on N tokens", .group = output},
      {.name = "--rows", .value = "N", .help = "how many strategies to print (default 10)", .group = output},
      {.name = "--rank", .value = "N", .help = "which row of the table to save (default 1)", .group = output},
      {.name = "--save-strategy", .value = "FILE", .help = "write the strategy of that row", .group = output},
      {.name = "--save-plan", .value = "FILE", .help = "write the plan of that row", .group = output},
      {.name = "--residuals",
       .value = "N",
       .help = "also simulate N strategies sampled from the whole space, and print how far off both estimates are",
       .group = output},
      {.name = "--json", .help = "print JSON", .group = output},
      {.name = "--csv", .help = "print CSV", .group = output},
      progress_option(output)};
  verb.options.insert(verb.options.end(), more.begin(), more.end());
  return verb;
}

}  // namespace foreshard
