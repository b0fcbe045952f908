#include "strategy/tune/parts_choice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/plan/ranks.h"
#include "replay/light_clock.h"
#include "replay/replay.h"
#include "strategy/partition/fine_parts.h"
#include "strategy/resolve/resolve.h"
#include "strategy/resolve/tables.h"
#include "strategy/tune/plan_trial.h"

namespace foreshard {

namespace {

std::optional<Plan> trial(const Model& model, const Cluster& cluster, Strategy strategy, const std::vector<int>& parts,
                          const LowerOptions& options) {
  strategy.communication.parts = parts;
  return trial_plan(model, cluster, std::move(strategy), options);
}

// An operation of a layer in a plan: the computes up to a collective between its ranks, and that collective.
struct Timed {
  std::string name = {};  // "layer.collective"
  int layer = 0;          // counted, of the model
  int operation = 0;      // operation_of() in the layer
  int pieces = 1;
  double compute = 0, communication = 0;  // seconds, of all pieces
};
using Chain = std::vector<Timed>;  // of one forward, or one backward, of a pipeline stage

// Times of the operations of the first forward and the first backward of each stage, from a replay at granularity Op.
class OperationTimes {
 public:
  OperationTimes(const Plan& plan, const Cluster& cluster, const OpGraph& graph) : plan_(plan), graph_(graph) {
    for (std::size_t l = 0; l < graph.layers.size(); ++l)
      if (graph.layers[l].counted) layers_.try_emplace(graph.layers[l].name, static_cast<int>(layers_.size()), l);
    player::LightClock clock;
    const Result result = replay(plan, cluster, clock, {.granularity = Granularity::Op, .memory = false});
    const Ranks ranks(plan);
    std::map<std::int32_t, RankId> timed;  // [role]: the rank whose times are taken
    for (const Span& span : result.trace.spans) {
      const RankId rank = result.trace.classes[span.who.index()].members.front();
      const std::int32_t role = ranks.role(rank).value;
      if (timed.try_emplace(role, rank).first->second == rank)
        seconds_[{role, span.action, span.instruction}] = static_cast<double>((span.end - span.begin).value) * 1e-9;
    }
  }

  // [stage]: its forward, its backward. With a stage on two ranks, those of the first.
  std::map<std::int32_t, std::vector<Chain>> all() {
    std::map<std::int32_t, std::vector<Chain>> chains;
    std::set<std::pair<std::int32_t, bool>> seen;
    for (std::size_t r = 0; r < plan_.roles.size(); ++r)
      for (std::size_t a = 0; a < plan_.roles[r].actions.size(); ++a)
        for (const Does& does : plan_.roles[r].actions[a].does) {
          if (does.work == Work::W || does.work == Work::Update) continue;
          if (seen.insert({does.stage, does.work == Work::F}).second)
            chains[does.stage].push_back(chain(static_cast<std::int32_t>(r), static_cast<std::int32_t>(a)));
        }
    return chains;
  }

 private:
  Chain chain(std::int32_t r, std::int32_t action) {
    Chain operations;
    const Role& role = plan_.roles[static_cast<std::size_t>(r)];
    const SegmentId segment = role.actions[static_cast<std::size_t>(action)].segment;
    const std::vector<Instruction>& runs = plan_.segments[segment.index()].instructions;
    double compute = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const double taken = seconds_[{r, action, static_cast<std::int32_t>(i)}];
      if (std::holds_alternative<Compute>(runs[i].what)) compute += taken;
      if (!std::holds_alternative<Collective>(runs[i].what) || !runs[i].layer.valid()) continue;
      // Of a part "fc2_reduce 1/4", sent as codes "fc2_reduce, exchange codes 1/4".
      const std::string name = runs[i].name.substr(0, runs[i].name.find_first_of(" ,"));
      const std::size_t slash = runs[i].name.rfind('/');
      const std::string& layer = role.layers[runs[i].layer.index()];
      const auto known = layers_.find(layer);
      if (known != layers_.end()) {
        const auto [number, at] = known->second;
        const std::vector<Operator>& ops = graph_.kinds[static_cast<std::size_t>(graph_.layers[at].kind)].operators;
        const auto op = std::ranges::find(ops, name, &Operator::name);
        if (op != ops.end()) {
          if (operations.empty() || operations.back().name != layer + "." + name)
            operations.push_back({layer + "." + name, number, operation(at, op - ops.begin()), 1, 0, 0});
          if (slash != std::string::npos) operations.back().pieces = std::stoi(runs[i].name.substr(slash + 1));
          Timed& timed = operations.back();
          timed.compute += compute, timed.communication += taken;
        }
      }
      compute = 0;
    }
    return operations;
  }

  int operation(std::size_t layer, std::ptrdiff_t op) const {
    return operation_of(graph_.kinds[static_cast<std::size_t>(graph_.layers[layer].kind)], static_cast<std::size_t>(op));
  }

  const Plan& plan_;
  const OpGraph& graph_;
  std::map<std::string, std::pair<int, std::size_t>> layers_ = {};                       // counted, and of the graph
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, double> seconds_ = {};  // [role, action, instruction]
};

// Each of n parts takes overhead + work / n. Finds both from `one`, the time of the whole, and `all`, the time of n parts together.
std::pair<double, double> overhead_and_work(double one, double all, int n) {
  const double overhead = n < 2 ? 0 : std::clamp((all - one) / (n - 1), 0.0, one);
  return {overhead, one - overhead};
}

// Numbers of parts of the operations of one stage.
using Numbers = std::map<std::pair<int, int>, int>;  // [counted layer, operation]

// The forward and the backward of a stage, whose operations are the same.
class StageParts {
 public:
  StageParts(const std::vector<Chain>& whole, const std::vector<Chain>& cut) {
    for (std::size_t c = 0; c < whole.size(); ++c) {
      if (c >= cut.size() || cut[c].size() != whole[c].size()) continue;
      Way& way = ways_.emplace_back();
      for (std::size_t i = 0; i < whole[c].size(); ++i) {
        const Timed &one = whole[c][i], &all = cut[c][i];
        const auto [overhead, compute] = overhead_and_work(one.compute, all.compute, all.pieces);
        const auto [latency, communication] = overhead_and_work(one.communication, all.communication, all.pieces);
        way.operations.push_back(
            {.compute = compute, .communication = communication, .overhead = overhead, .latency = latency});
        way.keys.emplace_back(one.layer, one.operation);
      }
    }
  }

  // The planner's numbers for the forward or for the backward, whichever makes both together faster; where the two differ, the other
  // one's number holds if it is faster still.
  Numbers planned(const std::vector<int>& allowed) const {
    std::vector<Numbers> of_way;
    for (const Way& way : ways_) {
      const FineParts plan = plan_fine_parts(way.operations, allowed);
      Numbers& numbers = of_way.emplace_back();
      for (std::size_t i = 0; i < way.keys.size(); ++i) numbers[way.keys[i]] = plan.parts[i];
    }
    Numbers best;
    for (Numbers numbers : of_way) {
      for (const Numbers& other : of_way) numbers.insert(other.begin(), other.end());
      if (best.empty() || seconds(numbers) < seconds(best)) best = std::move(numbers);
    }
    for (const Numbers& other : of_way)
      for (const auto& [key, n] : other) {
        if (best.at(key) == n) continue;
        Numbers changed = best;
        changed[key] = n;
        if (seconds(changed) < seconds(best)) best = std::move(changed);
      }
    return best;
  }

 private:
  struct Way {
    std::vector<FineOperation> operations = {};
    std::vector<std::pair<int, int>> keys = {};
  };

  double seconds(const Numbers& numbers) const {
    double all = 0;
    for (const Way& way : ways_) {
      std::vector<int> parts;
      for (const auto& key : way.keys) parts.push_back(numbers.at(key));
      all += fine_seconds(way.operations, parts);
    }
    return all;
  }

  std::vector<Way> ways_ = {};
};

// The planner's numbers for every layer, as CommunicationChoice::parts states them.
std::vector<int> planned_parts(const std::vector<StageParts>& stages, const std::vector<int>& allowed, std::size_t layers) {
  std::vector<int> parts(2 * layers, 1);
  for (const StageParts& stage : stages)
    for (const auto& [key, n] : stage.planned(allowed))
      if (key.second < 2) parts[2 * static_cast<std::size_t>(key.first) + static_cast<std::size_t>(key.second)] = n;
  return parts;
}

// For attention and for MLP the number that most layers have.
std::vector<int> most_frequent(const std::vector<int>& parts) {
  std::vector<int> both;
  for (std::size_t operation = 0; operation < 2; ++operation) {
    std::map<int, int> votes;
    for (std::size_t at = operation; at < parts.size(); at += 2) ++votes[parts[at]];
    both.push_back(std::ranges::max_element(votes, {}, &std::pair<const int, int>::second)->first);
  }
  return both;
}

}  // namespace

std::vector<int> best_parts(const Model& model, const Cluster& cluster, Strategy strategy, const LowerOptions& options) {
  std::vector<int> allowed;
  for (const int n : {1, 2, 4, 8})
    if (strategy.batch.micro % n == 0) allowed.push_back(n);
  if (allowed.size() == 1) return {};
  const auto graph = graph_of(model, strategy);
  const auto* layers = std::get_if<OpGraph>(&graph);
  if (!layers) return {};
  const auto counted = static_cast<std::size_t>(std::ranges::count_if(layers->layers, &OpGraph::Layer::counted));
  FS_ASSERT(counted > 0);

  std::vector<std::vector<int>> tries = {{}};
  for (const int n : allowed)
    if (n > 1) tries.push_back({n});
  const auto whole = trial(model, cluster, strategy, {}, options), cut = trial(model, cluster, strategy, tries.back(), options);
  if (whole && cut) {
    const auto of_whole = OperationTimes(*whole, cluster, *layers).all(), of_cut = OperationTimes(*cut, cluster, *layers).all();
    std::vector<StageParts> stages;
    for (const auto& [stage, chains] : of_whole)
      if (const auto found = of_cut.find(stage); found != of_cut.end()) stages.emplace_back(chains, found->second);
    // A number that only few layers need makes finer groups of samples for all of them.
    for (std::size_t most = 2; most <= allowed.size(); ++most) {
      const auto end = allowed.begin() + static_cast<std::ptrdiff_t>(most);
      const std::vector<int> parts = planned_parts(stages, {allowed.begin(), end}, counted);
      for (const std::vector<int>& next : {shortest_parts(most_frequent(parts)), shortest_parts(parts)})
        if (std::ranges::find(tries, next) == tries.end()) tries.push_back(next);
    }
  }
  std::vector<int> best;
  double least = 0;
  for (const std::vector<int>& parts : tries) {
    const auto plan = trial(model, cluster, strategy, parts, options);
    if (!plan) continue;
    const double seconds = makespan_of(*plan, cluster, {.granularity = Granularity::Layer});
    if (least == 0 || seconds < least) least = seconds, best = parts;
  }
  return best;
}

}  // namespace foreshard
