#include "strategy/search/search_relax.h"

#include <algorithm>
#include <cstdio>

#include "core/base/count_text.h"
#include "core/graph/op_graph.h"
#include "core/strategy/strategy_options.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

constexpr int kMostTimesTheNodes = 64;
constexpr std::size_t kMostAnswers = 5;

class Relaxing {
 public:
  Relaxing(const Model& model, const Cluster& cluster, const SearchOptions& options)
      : model_(model), cluster_(cluster), options_(options) {
    options_.refine = 4, options_.shortlist = 64;
    options_.stages = options_.offload = false;
    options_.progress = {};
  }

  std::vector<std::string> all() {
    drop_each_fixed();
    if (options_.max_tp > 0) {
      SearchOptions free = options_;
      free.max_tp = 0;
      attempt("without --max-tp " + std::to_string(options_.max_tp), free, cluster_);
    }
    if (options_.base.framework != "foreshard") {
      SearchOptions free = options_;
      free.base.framework = "foreshard";
      attempt("without --framework " + options_.base.framework, free, cluster_);
    }
    lower_reserve();
    other_batches();
    more_nodes();
    if (found_.size() > kMostAnswers) found_.resize(kMostAnswers);
    return found_;
  }

 private:
  bool attempt(const std::string& change, const SearchOptions& options, const Cluster& cluster) {
    if (options_.cancel && options_.cancel->load()) return false;
    std::variant<SearchResult, Infeasible> answer;
    try {
      answer = search(model_, cluster, options);
    } catch (const Bug& bug) {
      found_.push_back(change + " foreshard has an internal error: " + bug.what());
      return false;
    }
    const auto* result = std::get_if<SearchResult>(&answer);
    if (const auto* refused = std::get_if<Infeasible>(&answer)) why_not_ = refused->reason;
    if (!result || result->ranked.empty()) return false;
    const Candidate& best = result->ranked.front();
    const Point& p = best.point;
    const std::vector<StageDegrees>& stages = best.strategy.stages;
    const std::string degrees = !stages.empty()
                                    ? "stages " + to_text(stages)
                                    : "tp " + std::to_string(p.tp) + (p.cp > 1 ? ", cp " + std::to_string(p.cp) : "") +
                                          ", pp " + std::to_string(p.pp) + ", dp " + std::to_string(p.dp);
    char words[64];
    std::snprintf(words, sizeof words, ", micro-batch %lld, %.4g s", static_cast<long long>(p.micro_batch), best.seconds());
    found_.push_back(change + ": " + degrees + words);
    return true;
  }

  void drop_each_fixed() {
    for (std::size_t i = 0; i < options_.fixed.size(); ++i) {
      SearchOptions free = options_;
      const std::string path = free.fixed[i];
      std::erase(free.fixed, path);
      if (i != static_cast<std::size_t>(std::find(options_.fixed.begin(), options_.fixed.end(), path) - options_.fixed.begin()))
        continue;  // named twice
      const StrategyOption* option = find_option(path);
      const std::string value = option ? option->get(options_.base) : "";
      if (path == "dp") free.base.dp = 0;
      if (path == "placement") free.base.placement.clear();
      if (path == "policy") free.base.policy = Strategy{}.policy;
      if (path == "offload_optimizer") free.base.offload = {}, free.offload = true;
      attempt("without " + path + " = " + value, free, cluster_);
    }
  }

  void lower_reserve() {
    if (options_.base.device_memory.reserve <= 0.01) return;
    SearchOptions free = options_;
    free.base.device_memory.reserve = options_.base.device_memory.reserve > 0.06 ? 0.06 : 0.01;
    char words[40];
    std::snprintf(words, sizeof words, "with --reserve %g%%", 100 * free.base.device_memory.reserve);
    attempt(words, free, cluster_);
  }

  // The nearest multiples of the number of GPUs, above and below.
  void other_batches() {
    const std::int64_t batch = options_.base.batch.global, unit = gpu_count(cluster_);
    for (const std::int64_t other : {(batch + unit - 1) / unit * unit, batch / unit * unit}) {
      if (other <= 0 || other == batch) continue;
      SearchOptions free = options_;
      free.base.batch.global = other;
      if (attempt("with --global-batch " + std::to_string(other), free, cluster_)) return;
    }
  }

  void more_nodes() {
    if (cluster_.nodes.size() != 1) return;
    for (int times = 2; times <= kMostTimesTheNodes; times *= 2) {
      const int nodes = cluster_.nodes.front().count * times;
      const std::string before = why_not_;
      if (attempt("with --nodes " + std::to_string(nodes), options_, with_nodes(cluster_, nodes))) return;
      if (times > 2 && why_not_ == before) return;  // twice the nodes have not changed the reason, so more will not
    }
  }

  const Model& model_;
  const Cluster& cluster_;
  SearchOptions options_;
  std::vector<std::string> found_ = {};
  std::string why_not_ = {};  // of the last attempt that failed
};

}  // namespace

Infeasible empty_space(const std::string& why) { return {.reason = "no strategy fits: " + why}; }
std::optional<Infeasible> ruled_out(const SearchResult& result, const std::map<std::string, std::int64_t>& refusals,
                                    bool screened, const Strategy& base) {
  if (result.pruned.memory == 0 && result.pruned.framework > 0) {
    const auto most =
        std::max_element(refusals.begin(), refusals.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return empty_space("--framework " + base.framework + " can run none of the strategies: " + most->first);
  }
  if (result.pruned.memory == 0 && !screened) return {};
  if (base.framework != Strategy{}.framework)
    return empty_space("all " + count_text(result.enumerated) + " strategies need more memory in " + base.framework +
                       " than a GPU has, or cannot run in it");
  return empty_space("all " + count_text(result.enumerated) + " strategies need more memory than " +
                     std::to_string(static_cast<int>(100 * (1 - base.device_memory.reserve))) + " % of a GPU");
}

// At best ZeRO cuts them over all GPUs, and some rank has at least the mean.
std::optional<Infeasible> states_exceed_memory(const Model& model, const Cluster& cluster, const Strategy& base) {
  const StateTypes types = state_types(base);
  const int moments = base.optimizer.kind == OptimizerKind::Adam ? 2 : base.optimizer.momentum > 0 ? 1 : 0;
  const std::int64_t states = (moments + (types.master ? 1 : 0)) * size_of(types.state).value;
  const std::int64_t each = (base.offload.parameters == Space::Device ? size_of(types.param).value : 0) +
                            (base.offload.optimizer == Space::Device ? states : 0);
  const std::int64_t gpus = gpu_count(cluster);
  const std::int64_t of_frozen = base.offload.parameters == Space::Device ? size_of(types.param).value : 0;
  const std::int64_t trained =
      base.optimizer.lora.any() ? adapter_elements(model, base.optimizer.lora) : parameter_count(model);
  const double least =
      (static_cast<double>(trained) * static_cast<double>(each) +
       (base.optimizer.lora.any() ? static_cast<double>(parameter_count(model)) * static_cast<double>(of_frozen) : 0.0)) /
      static_cast<double>(gpus);
  Bytes most = {};
  for (const NodeGroup& nodes : cluster.nodes) most = std::max(most, gpu_of(cluster, nodes.shape.gpu).memory);
  const double usable = static_cast<double>(most.value) * (1 - base.device_memory.reserve);
  if (least <= usable) return {};
  return empty_space("parameters and optimizer states alone take " + in_size({static_cast<std::int64_t>(least)}) +
                     " on each of " + counted(gpus, "GPU") + ", however they are cut; " +
                     in_size({static_cast<std::int64_t>(usable)}) + " are usable");
}

Infeasible refused_by_lower(const Model& model, const Cluster& cluster, const Strategy& strategy,
                            const MachineProfile* profile) {
  const auto answer =
      tuned_plan(model, cluster, strategy, {.ignore_memory = true, .pack_by_order = false, .check = false, .profile = profile});
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    Infeasible empty = empty_space("for example: " + refused->reason);
    for (const std::string& change : refused->would_help)
      if (change.starts_with("--precision ")) empty.would_help.push_back(change);  // what no search varies
    return empty;
  }
  return empty_space("no schedule takes these degrees with this batch");
}

std::vector<std::string> relaxations(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  return Relaxing(model, cluster, options).all();
}

}  // namespace foreshard
