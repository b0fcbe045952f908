#include "cli/job/first_answer.h"

#include <algorithm>

#include "cli/program/interrupt.h"
#include "core/cluster/cluster_slice.h"
#include "core/strategy/strategy_options.h"
#include "strategy/search/search.h"

namespace foreshard {

// Options that say how the work is split or where memory is; whoever gives one of them wants to see that strategy.
static bool asks_for_a_strategy(const Arguments& arguments) {
  static const std::vector<std::string> paths = {
      "dp",       "tp",     "cp",          "pp",     "ep",    "etp",  "virtual_stages",
      "schedule", "stages", "layer_split", "policy", "parts", "zero", "asynchronous"};
  const auto sets_strategy = [](const std::string& setting) { return setting.starts_with("strategy."); };
  if (arguments.has("--strategy") || std::ranges::any_of(arguments.all("--set"), sets_strategy)) return true;
  return std::ranges::any_of(strategy_options(), [&](const StrategyOption& option) {
    const bool splits = std::ranges::find(paths, option.path) != paths.end() || option.path.starts_with("offload");
    return splits && !option.flag.empty() && arguments.has(option.flag);
  });
}

// The options of `found` that have other values in `as_given`, of those that are varied; what follows from them is left out.
static std::string changed_options(const Strategy& as_given, const Strategy& found) {
  static const std::vector<std::string> varied = {
      "tp", "cp", "pp", "ep", "etp", "micro_batch", "zero", "recompute", "sequence_parallel"};
  std::string text;
  for (const std::string& path : varied) {
    const StrategyOption& option = *find_option(path);
    const std::string value = option.get(found);
    if (value == option.get(as_given)) continue;
    text += (text.empty() ? "" : " ") + option.flag;
    if (option.type != OptionType::Flag) text += " " + value;
  }
  return text;
}

std::optional<FirstAnswer> first_answer(const Arguments& arguments, const Job& job, const Strategy& as_given) {
  if (arguments.flag("--as-given") || arguments.flag("--ignore-memory") || asks_for_a_strategy(arguments)) return {};
  if (as_given.batch.global <= 0) return {};
  Cluster cluster = job.cluster;
  const int all = gpu_count(cluster), gpus = as_given.dp > 0 ? as_given.dp : all;
  if (gpus < all && node_count(cluster) == 1) cluster = with_first_gpus(std::move(cluster), gpus);
  if (gpus != gpu_count(cluster)) return {};  // a search uses whole nodes
  SearchOptions options{.base = job.strategy};
  options.base.dp = 0, options.base.batch.global = as_given.batch.global;
  options.fixed = {"overlap", "placement", "zero_group", "schedule", "virtual_stages", "delay_wgrad", "expert_dispatcher"};
  for (const char* path : {"micro_batch", "recompute", "sequence_parallel"})
    if (arguments.has(find_option(path)->flag)) options.fixed.emplace_back(path);
  options.schedules = options.best = options.stages = options.balance = options.offload = false;
  options.shortlist = 16, options.refine = 2;
  options.profile = job.measured(), options.cancel = &watch_interrupt();
  auto answer = search(job.model, cluster, options);
  const auto* found = std::get_if<SearchResult>(&answer);
  if (!found || found->ranked.empty()) return {};
  const Strategy& best = found->ranked.front().strategy;
  return FirstAnswer{best, changed_options(as_given, best)};
}

}  // namespace foreshard
