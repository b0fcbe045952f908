#include "strategy/tune/parts_choice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

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
  int operation = 0;      // operation_of() in the layer
  int pieces = 0;
  double compute = 0, communication = 0;  // seconds, of all pieces
};

// Times of the operations of the first forward and the first backward of the first role, from a replay at granularity Op.
class OperationTimes {
 public:
  OperationTimes(const Plan& plan, const Cluster& cluster, const LayerGraph& layer) : plan_(plan), layer_(layer) {
    player::LightClock clock;
    const Result result = replay(plan, cluster, clock, {.granularity = Granularity::Op, .memory = false});
    for (const Span& span : result.trace.spans)
      if (result.trace.classes[span.who.index()].members.front() == RankId{0})
        seconds_[{span.action, span.instruction}] = static_cast<double>((span.end - span.begin).value) * 1e-9;
  }

  std::vector<Timed> all() {
    std::vector<Timed> operations;
    for (const Work work : {Work::F, Work::B}) {
      const std::vector<Action>& actions = plan_.roles.front().actions;
      const auto first = std::ranges::find_if(
          actions, [&](const Action& action) { return !action.does.empty() && action.does[0].work == work; });
      if (first != actions.end()) add(static_cast<int>(first - actions.begin()), operations);
    }
    return operations;
  }

 private:
  void add(int action, std::vector<Timed>& operations) {
    const Role& role = plan_.roles.front();
    const SegmentId segment = role.actions[static_cast<std::size_t>(action)].segment;
    const std::vector<Instruction>& runs = plan_.segments[segment.index()].instructions;
    double compute = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const double taken = seconds_[{action, static_cast<int>(i)}];
      if (std::holds_alternative<Compute>(runs[i].what)) compute += taken;
      if (!std::holds_alternative<Collective>(runs[i].what) || !runs[i].layer.valid()) continue;
      const std::string name = runs[i].name.substr(0, runs[i].name.find(' '));  // of a part: "fc2_reduce 1/4"
      const auto op = std::ranges::find(layer_.operators, name, &Operator::name);
      if (op != layer_.operators.end()) {
        const std::string full = role.layers[runs[i].layer.index()] + "." + name;
        if (operations.empty() || operations.back().name != full)
          operations.push_back({full, operation_of(layer_, static_cast<std::size_t>(op - layer_.operators.begin())), 0, 0, 0});
        Timed& timed = operations.back();
        ++timed.pieces, timed.compute += compute, timed.communication += taken;
      }
      compute = 0;
    }
  }

  const Plan& plan_;
  const LayerGraph& layer_;
  std::map<std::pair<int, int>, double> seconds_ = {};  // (action, instruction)
};

// Each of n parts takes overhead + work / n. Finds both from `one`, the time of the whole, and `all`, the time of n parts together.
std::pair<double, double> overhead_and_work(double one, double all, int n) {
  const double overhead = std::clamp((all - one) / (n - 1), 0.0, one);
  return {overhead, one - overhead};
}

// For each kind of operation the number of parts that the planner chooses most often.
std::vector<int> planned_parts(const std::vector<Timed>& whole, const std::vector<Timed>& cut,
                               const std::vector<int>& allowed) {
  std::vector<FineOperation> chain;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto [overhead, compute] = overhead_and_work(whole[i].compute, cut[i].compute, cut[i].pieces);
    const auto [latency, communication] = overhead_and_work(whole[i].communication, cut[i].communication, cut[i].pieces);
    chain.push_back({.compute = compute, .communication = communication, .overhead = overhead, .latency = latency});
  }
  const FineParts plan = plan_fine_parts(chain, allowed);
  std::vector<int> parts;
  for (int operation = 0; operation < 2; ++operation) {
    std::map<int, int> votes;
    for (std::size_t i = 0; i < whole.size(); ++i)
      if (whole[i].operation == operation) ++votes[plan.parts[i]];
    if (votes.empty()) return {};
    parts.push_back(std::ranges::max_element(votes, {}, &std::pair<const int, int>::second)->first);
  }
  return parts;
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
  const auto counted = std::ranges::find_if(layers->layers, &OpGraph::Layer::counted);
  FS_ASSERT(counted != layers->layers.end());
  const LayerGraph& layer = layers->kinds[static_cast<std::size_t>(counted->kind)];

  std::vector<std::vector<int>> tries = {{}};
  for (const int n : allowed)
    if (n > 1) tries.push_back({n});
  const auto whole = trial(model, cluster, strategy, {}, options), cut = trial(model, cluster, strategy, tries.back(), options);
  if (whole && cut)
    tries.push_back(
        planned_parts(OperationTimes(*whole, cluster, layer).all(), OperationTimes(*cut, cluster, layer).all(), allowed));
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
