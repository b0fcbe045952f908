#include "strategy/hybrid_stages.h"

#include <algorithm>

#include "core/units.h"
#include "strategy/search_space.h"

namespace foreshard {

namespace {

constexpr int kMostInFlight = 12;
constexpr double kHeavier = 4;  // sums of gradients beside nothing cost more than their share of a micro-batch

// Every run of degrees of which each divides the next one.
std::vector<std::vector<int>> chains(const HybridJob& job) {
  std::vector<std::vector<int>> all;
  for (const TensorDegree& low : job.degrees)
    for (const TensorDegree& high : job.degrees) {
      if (high.degree % low.degree != 0) continue;
      std::vector<int> chain;
      for (const TensorDegree& each : job.degrees)
        if (each.degree % (chain.empty() ? low.degree : chain.back()) == 0 && high.degree % each.degree == 0)
          chain.push_back(each.degree);
      if (std::ranges::find(all, chain) == all.end()) all.push_back(std::move(chain));
    }
  return all;
}

bool ties(const Model& model) {
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  return transformer && transformer->tied_embeddings;
}

HybridJob sayable(const Strategy& strategy, const HybridJob& job, const std::vector<int>& chain) {
  HybridJob one = job;
  std::erase_if(one.degrees, [&](const TensorDegree& each) { return std::ranges::find(chain, each.degree) == chain.end(); });
  one.replicas.clear();
  for (const std::int64_t d : divisors(strategy.global_batch / strategy.micro_batch))
    if (d <= job.devices) one.replicas.push_back(static_cast<int>(d));
  return one;
}

Strategy said(const Strategy& strategy, const HybridPartition& partition) {
  Strategy s = strategy;
  s.dp = 0, s.tp = s.pp = s.cp = s.virtual_stages = 1;
  s.zero = s.zero_group = 0;
  s.sequence_parallel = false;
  s.layer_split.clear(), s.placement.clear();
  s.schedule = Schedule::OneFOneB;
  s.stages.clear();
  for (const HybridStage& stage : partition.stages)
    s.stages.push_back({stage.last - stage.first, stage.replicas, stage.tensor});
  return s;
}

double slowest(const HybridJob& job, const HybridPartition& partition) {
  double cost = 0;
  for (const HybridStage& stage : partition.stages) cost = std::max(cost, hybrid_cost(job, stage));
  return cost;
}

double guess(const HybridJob& job, const HybridPartition& partition) {
  double through = 0;
  for (const HybridStage& stage : partition.stages)
    for (const TensorDegree& degree : job.degrees)
      for (int i = stage.first; degree.degree == stage.tensor && i < stage.last; ++i)
        through += degree.layers[static_cast<std::size_t>(i)].forward + degree.layers[static_cast<std::size_t>(i)].backward;
  return job.microbatches * partition.cost + through;
}

class Staged {
 public:
  Staged(const Model& model, const Cluster& cluster, const Strategy& strategy, const HybridJob& job)
      : model_(model), cluster_(cluster), strategy_(strategy), job_(job) {}

  // The partition of the job that counts the fewest micro-batches in flight and fits.
  void look(HybridJob job) {
    for (job.in_flight = 1; job.in_flight <= kMostInFlight; ++job.in_flight) {
      HybridPartition partition = partition_hybrid(job);
      if (partition.stages.empty()) return;
      const Strategy s = said(strategy_, partition);
      if (std::ranges::find(seen_, s.stages) != seen_.end()) continue;
      seen_.push_back(s.stages);
      auto answer = lower(model_, cluster_, s);
      if (auto* lowered = std::get_if<Lowered>(&answer)) {
        partition.cost = slowest(job_, partition);
        const double seconds = guess(job_, partition);
        found_.push_back({std::move(partition), std::move(*lowered), seconds});
        return;
      }
      refusal_ = std::get<Infeasible>(answer);
    }
  }
  StagedPlans best(int most) {
    std::stable_sort(found_.begin(), found_.end(), [](const StagedPlan& a, const StagedPlan& b) { return a.guess < b.guess; });
    if (static_cast<int>(found_.size()) > most) found_.resize(static_cast<std::size_t>(most));
    if (!found_.empty()) refusal_.reset();
    return {std::move(found_), refusal_};
  }

 private:
  const Model& model_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  const HybridJob& job_;
  std::vector<std::vector<StageDegrees>> seen_ = {};
  std::vector<StagedPlan> found_ = {};
  std::optional<Infeasible> refusal_ = {};  // the last one
};

}  // namespace

StagedPlans staged_plans(const Model& model, const Cluster& cluster, const Strategy& strategy, const HybridJob& job, int most) {
  Staged staged(model, cluster, strategy, job);
  for (const std::vector<int>& chain : chains(job)) {
    HybridJob one = sayable(strategy, job, chain);
    for (const int end : ties(model) ? chain : std::vector<int>{0}) {
      one.ends = end;
      for (const double heavier : {1.0, kHeavier}) {
        one.microbatches = job.microbatches / heavier;
        staged.look(one);
      }
    }
  }
  return staged.best(most);
}

}  // namespace foreshard
