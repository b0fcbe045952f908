#include "cli/parts/search_failed.h"

#include <algorithm>
#include <ostream>

#include "cli/parts/search_run.h"
#include "cli/program/failure.h"
#include "cli/program/shell_words.h"
#include "core/base/count_text.h"
#include "core/base/error.h"
#include "core/strategy/strategy_options.h"

namespace foreshard {

// The options of the command line that are not of the strategy; of --set those of model and cluster.
static std::vector<std::string> words_of_job(const Arguments& arguments) {
  std::vector<std::string> words = {"foreshard", "simulate"};
  for (const VerbOption& option : job_options()) {
    const auto same = [&](const StrategyOption& known) { return known.flag == option.name; };
    if (option.name == "--strategy" || std::ranges::any_of(strategy_options(), same)) continue;
    for (const std::string& value : arguments.all(option.name)) {
      if (option.name == "--set" && value.starts_with("strategy.")) continue;
      words.push_back(option.name);
      if (!option.value.empty()) words.push_back(value);
    }
  }
  return words;
}

std::string simulate_command(const Arguments& arguments, const Strategy& strategy) {
  std::vector<std::string> words = words_of_job(arguments);
  const Strategy standard;
  for (const StrategyOption& option : strategy_options()) {
    const std::string value = option.get(strategy);
    if (value == option.get(standard)) continue;
    if (option.type == OptionType::Flag && value == "true" && !option.flag.empty()) {
      words.push_back(option.flag);
    } else if (option.type == OptionType::Flag || option.flag.empty()) {
      words.insert(words.end(), {"--set", "strategy." + option.path + "=" + value});
    } else {
      words.insert(words.end(), {option.flag, value});
    }
  }
  return shell_line(words);
}

void write_failed(JsonWriter& json, const Arguments& arguments, const std::vector<FailedCandidate>& failed) {
  json.begin_array();
  for (const FailedCandidate& each : failed) {
    json.begin_object().field("why", each.why).field("candidates", each.candidates);
    json.key("strategy").raw(to_json(each.strategy));
    json.field("command", simulate_command(arguments, each.strategy)).end_object();
  }
  json.end_array();
}

void ToldSearches::tell(const Arguments& arguments, const SearchResult& result) {
  for (const FailedCandidate& failed : result.failed) {
    any_ = true;
    console_.err << "foreshard: " << counted(failed.candidates, "strategy", "strategies")
                 << " left out: " << bug_report(failed.why, simulate_command(arguments, failed.strategy)) << "\n";
  }
}

std::variant<SearchResult, Infeasible> ToldSearches::run(const Arguments& arguments, const Job& job,
                                                         const SearchOptions& options) {
  try {
    auto answer = run_search(job, options, read_top(arguments));
    if (const auto* result = std::get_if<SearchResult>(&answer)) tell(arguments, *result);
    return answer;
  } catch (const Bug& bug) {
    any_ = true;
    std::vector<VerbOption> all = job_options();
    const std::vector<VerbOption> more = search_run_options();
    all.insert(all.end(), more.begin(), more.end());
    console_.err << "foreshard: " << bug_report(bug.what(), shell_line("search", all, arguments)) << "\n";
    return Infeasible{.reason = std::string("internal error: ") + bug.what()};
  }
}

}  // namespace foreshard
