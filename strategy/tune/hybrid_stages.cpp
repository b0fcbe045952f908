#include "strategy/tune/hybrid_stages.h"

#include <algorithm>

#include "core/base/divisors.h"
#include "core/base/units.h"
#include "strategy/partition/partition_step.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

constexpr int kMostTries = 12;
constexpr double kHeavier =
    4;  // factor on gradient sums: those that overlap with nothing cost more than their share of a micro-batch
constexpr double kTighter = 0.94;  // factor on the capacity after `lower` found that a partition does not fit
constexpr double kQuick = 5e7;     // approximate steps of partition_hybrid up to which it is used
constexpr int kLoweredForOne = 6;  // plans that are lowered at most, per plan that is asked for

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
  return transformer && shares_embedding(*transformer);
}

std::vector<int> sayable_replicas(const Strategy& strategy, const HybridJob& job) {
  std::vector<int> all;
  for (const std::int64_t d : divisors(strategy.batch.global / strategy.batch.micro))
    if (d <= job.devices) all.push_back(static_cast<int>(d));
  return all;
}

HybridJob sayable(const Strategy& strategy, const HybridJob& job, const std::vector<int>& chain) {
  HybridJob one = job;
  std::erase_if(one.degrees, [&](const TensorDegree& each) { return std::ranges::find(chain, each.degree) == chain.end(); });
  one.replicas = sayable_replicas(strategy, job);
  return one;
}

double slowest(const HybridJob& job, const HybridPartition& partition) {
  double cost = 0;
  for (const HybridStage& stage : partition.stages) cost = std::max(cost, hybrid_cost(job, stage));
  return cost;
}

bool quick(const HybridJob& job) {
  const auto layers = static_cast<double>(job.degrees.front().layers.size());
  return layers * layers * job.devices * static_cast<double>(job.replicas.size() * job.degrees.size()) / 2 < kQuick;
}

std::vector<StageDegrees> degrees_of(const HybridPartition& partition) {
  std::vector<StageDegrees> stages;
  for (const HybridStage& stage : partition.stages) stages.push_back({stage.last - stage.first, stage.replicas, stage.tensor});
  return stages;
}

// A queue of partitions to be lowered, best guess first. In place of one that does not fit, a partition made with more memory counted
// enters the queue.
class Staged {
 public:
  Staged(const Model& model, const Cluster& cluster, const Strategy& strategy, const HybridJob& job, const StagedLimits& limits)
      : model_(model), cluster_(cluster), strategy_(strategy), job_(job), limits_(limits) {}

  void add(const HybridJob& sayable_job) {
    HybridJob job = sayable_job;
    job.in_flight = 0;
    propose({.job = job, .by_step = true});
    if (!quick(job)) return;
    job.in_flight = 1;
    for (const double heavier : {1.0, kHeavier}) {
      job.microbatches = job_.microbatches / heavier;
      propose({.job = job});
    }
  }

  StagedPlans best() {
    for (int left = limits_.most * kLoweredForOne; left > 0 && !waiting_.empty(); --left) {
      if (static_cast<int>(found_.size()) >= limits_.most) break;
      Proposal next = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      auto answer = tuned_plan(model_, cluster_, with_stages(strategy_, degrees_of(next.partition)),
                               {.pack_by_order = false, .check = false, .profile = limits_.profile});
      if (auto* lowered = std::get_if<Lowered>(&answer)) {
        next.partition.cost = slowest(job_, next.partition);
        found_.push_back({std::move(next.partition), std::move(*lowered), next.guess});
        continue;
      }
      refusal_ = std::get<Infeasible>(answer);
      count_more(next);
      propose(std::move(next));
    }
    std::stable_sort(found_.begin(), found_.end(), [](const StagedPlan& a, const StagedPlan& b) { return a.guess < b.guess; });
    if (!found_.empty()) refusal_.reset();
    return {std::move(found_), refusal_};
  }

 private:
  struct Proposal {
    HybridJob job = {};
    bool by_step = false;
    int tries = 0;  // earlier partitions of this proposal, which counted less memory
    HybridPartition partition = {};
    double guess = 0;
  };

  static void count_more(Proposal& proposal) {
    ++proposal.tries;
    if (proposal.by_step)
      proposal.job.capacity *= kTighter;
    else
      ++proposal.job.in_flight;
  }

  // Makes the proposal's partition and adds it to the queue. A partition that was proposed before is made again with more memory counted.
  void propose(Proposal next) {
    for (; next.tries < kMostTries; count_more(next)) {
      next.partition = next.by_step ? partition_step(next.job).partition : partition_hybrid(next.job);
      if (next.partition.stages.empty()) return;
      next.guess = step_cost(job_, next.partition.stages);
      if (next.guess > limits_.seconds) return;
      const std::vector<StageDegrees> stages = degrees_of(next.partition);
      if (std::ranges::find(seen_, stages) != seen_.end()) continue;
      seen_.push_back(stages);
      waiting_.insert(std::ranges::upper_bound(waiting_, next.guess, {}, &Proposal::guess), std::move(next));
      return;
    }
  }

  const Model& model_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  const HybridJob& job_;
  const StagedLimits& limits_;
  std::vector<std::vector<StageDegrees>> seen_ = {};
  std::vector<Proposal> waiting_ = {};
  std::vector<StagedPlan> found_ = {};
  std::optional<Infeasible> refusal_ = {};  // the last one
};

}  // namespace

Strategy with_stages(const Strategy& strategy, const std::vector<StageDegrees>& stages) {
  Strategy s = strategy;
  s.dp = 0, s.tp = s.pp = s.cp = s.virtual_stages = 1;
  s.zero.stage = s.zero.group = 0;
  s.sequence_parallel = false;
  s.pipeline.layer_split.clear(), s.placement.clear();
  if (s.pipeline.schedule != Schedule::GPipe) s.pipeline.schedule = Schedule::OneFOneB;
  s.stages = stages;
  return s;
}

StagedPlans staged_plans(const Model& model, const Cluster& cluster, const Strategy& strategy, const HybridJob& job,
                         const StagedLimits& limits) {
  Staged staged(model, cluster, strategy, job, limits);
  for (const std::vector<int>& chain : chains(job)) {
    HybridJob one = sayable(strategy, job, chain);
    for (const int end : ties(model) ? chain : std::vector<int>{0}) {
      one.ends = end;
      staged.add(one);
    }
  }
  return staged.best();
}

// For a lower bound, transfers between stages cost nothing, and all gradient sums run at the fastest bandwidth.
double staged_bound(const Strategy& strategy, HybridJob job) {
  job.replicas = sayable_replicas(strategy, job);
  job.in_flight = 1;
  job.link = HybridJob{}.link;
  for (TensorDegree& degree : job.degrees) degree.near = degree.far = std::max(degree.near, degree.far);
  return partition_step(job).bound;
}

}  // namespace foreshard
