#include "strategy/search/search_staged.h"

#include <algorithm>

#include "core/base/divisors.h"
#include "strategy/partition/partition_step.h"
#include "strategy/search/search_kept.h"
#include "strategy/search/search_space.h"
#include "strategy/tune/hybrid_search.h"
#include "strategy/tune/hybrid_stages.h"

namespace foreshard {

namespace {

constexpr double kWorth = 0.995;       // a bound must be below this share of the best uniform strategy's score
constexpr std::size_t kMeasured = 16;  // micro-batches and ways to recompute whose layers are measured
constexpr std::size_t kWave = 4;       // of these, at once; what they find may rule out later ones
constexpr int kProposals = 6;          // of each of these
constexpr std::size_t kRefined = 16;   // proposals of all together that are refined
constexpr std::size_t kUniform = 3;    // pipelines among the best uniform ones that are proposals, too
constexpr int kWalks = 4;
constexpr int kSteps = 80;          // of a walk
constexpr int kAtOnce = 8;          // refined together, whatever the threads
constexpr double kCells = 150'000;  // stages times micro-batches that all walks may look at: a cell takes some 40 microseconds

Point point_of(const Strategy& s) {
  return {.tp = 0,
          .pp = 0,
          .dp = 0,
          .micro_batch = s.batch.micro,
          .overlap_gradients = s.communication.overlap->gradients,
          .overlap_p2p = s.communication.overlap->p2p,
          .recompute = s.recompute.kind,
          .schedule = *s.pipeline.schedule};
}

struct Base {
  Strategy strategy = {};  // micro-batch, recomputation, schedule
  double bound = 0;
  HybridJob job = {};
};

struct Proposal {
  Strategy strategy = {};
  double guess = 0;
};

class StagesSearching {
 public:
  explicit StagesSearching(const StagedSearch& search)
      : search_(search), options_(search.options), winner_(search.ranked.front().score), best_(winner_ * kWorth) {}

  StagedResult run() {
    propose();
    if (proposals_.empty() || search_.stopped()) return {};
    add_uniform();
    std::ranges::stable_sort(proposals_, {}, &Proposal::guess);
    if (proposals_.size() > kRefined) proposals_.resize(kRefined);
    const JudgeStrategies judge = [this](const std::vector<Strategy>& strategies) { return refine_all(strategies); };
    std::vector<Strategy> starts;
    for (const Proposal& proposal : proposals_)
      for (const Schedule schedule : schedules()) {
        Strategy start = proposal.strategy;
        start.pipeline.schedule = schedule;
        if (std::ranges::find(starts, start) == starts.end()) starts.push_back(std::move(start));
      }
    const HybridSearch how{
        .devices = gpu_count(search_.cluster), .walks = kWalks, .steps = kSteps, .cells = kCells, .at_once = kAtOnce};
    if (const auto found = improve_stages(starts, how, judge)) vary(found->strategy);
    return {faster(), refined_};
  }

 private:
  std::vector<Schedule> schedules() const {
    if (is_fixed(options_, "schedule")) return {options_.base.pipeline.schedule.value_or(Schedule::OneFOneB)};
    return {Schedule::OneFOneB, Schedule::GPipe};
  }

  // Every micro-batch and way to recompute, the least bound first.
  std::vector<Base> bases() const {
    std::vector<std::int64_t> micro_batches = divisors(search_.space.batch);
    if (is_fixed(options_, "micro_batch")) micro_batches = {options_.base.batch.micro};
    std::vector<Recompute> recomputes = {options_.base.recompute};
    if (search_.space.recomputes.size() > 1)
      recomputes = {{}, {.kind = RecomputeKind::Selective}, {.kind = RecomputeKind::Full}};
    std::vector<Base> all;
    for (const std::int64_t micro_batch : micro_batches)
      for (const Recompute& recompute : recomputes) {
        if (search_.space.batch % micro_batch != 0 || search_.space.batch / micro_batch < 2) continue;
        Base base{.strategy = options_.base};
        base.strategy.batch.micro = micro_batch, base.strategy.recompute = recompute;
        base.strategy.pipeline.schedule = schedules().front();
        base.bound = screened_bound(base.strategy);
        if (!options_.prune || base.bound < best_) all.push_back(std::move(base));
      }
    std::ranges::stable_sort(all, {}, &Base::bound);
    return all;
  }

  // Lower bound from the layer times that the screen has measured, without regard to memory. 0: not known.
  double screened_bound(const Strategy& s) const {
    if (!search_.costs || s.recompute.layers != 0) return 0;
    HybridJob job{.devices = gpu_count(search_.cluster),
                  .microbatches = static_cast<double>(s.batch.global) / static_cast<double>(s.batch.micro)};
    for (const int tensor : tensors()) {
      Point point{.tp = tensor, .micro_batch = s.batch.micro};
      point.recompute = s.recompute.kind;
      const ShapeCosts* costs = search_.costs->find(point);
      if (!costs) continue;
      TensorDegree degree{.degree = tensor, .inside = job.devices};
      for (int i = 0; i < search_.space.layers; ++i) {
        const std::size_t kind = i == 0 ? 0 : i + 1 == search_.space.layers ? 2 : 1;
        const bool end = kind != 1;
        degree.layers.push_back({.forward = end ? costs->forward.one[kind] : costs->forward.layer,
                                 .backward = end ? costs->backward.one[kind] : costs->backward.layer});
      }
      job.degrees.push_back(std::move(degree));
    }
    return job.degrees.empty() ? 0 : staged_bound(s, std::move(job));
  }

  std::vector<int> tensors() const {
    if (is_fixed(options_, "tp")) return {options_.base.tp};
    std::vector<int> all;
    const int node = search_.cluster.nodes.front().shape.gpus;
    for (const std::int64_t tensor : divisors(std::min(node, gpu_count(search_.cluster))))
      if (options_.max_tp == 0 || tensor <= options_.max_tp) all.push_back(static_cast<int>(tensor));
    return all;
  }

  void propose() {
    std::vector<Base> all = bases();
    if (all.size() > kMeasured) all.resize(kMeasured);
    double guess = 1e300;  // the best so far
    for (std::size_t from = 0; from < all.size() && !search_.stopped(); from += kWave) {
      const std::size_t count = std::min(kWave, all.size() - from);
      std::vector<StagedPlans> found(count);
      const double enough = std::min(best_, guess);
      search_.in_parallel(count, [&](std::size_t i) {
        if (!options_.prune || all[from + i].bound < enough) found[i] = proposals_of(all[from + i]);
      });
      for (std::size_t i = 0; i < count; ++i)
        for (const StagedPlan& plan : found[i].plans) {
          proposals_.push_back({with_stages(all[from + i].strategy, plan.lowered.strategy.stages), plan.guess});
          guess = std::min(guess, plan.guess);
          layers_ = plan.partition.stages.back().last;
        }
    }
  }

  StagedPlans proposals_of(Base& base) const {
    base.job = hybrid_job(search_.model, search_.cluster, base.strategy, options_.max_tp, options_.profile);
    const std::vector<int> allowed = tensors();
    std::erase_if(base.job.degrees,
                  [&](const TensorDegree& degree) { return std::ranges::find(allowed, degree.degree) == allowed.end(); });
    if (base.job.degrees.empty()) return {};
    if (options_.prune && staged_bound(base.strategy, base.job) >= best_) return {};
    const StagedLimits limits{.most = kProposals, .seconds = options_.prune ? best_ : 1e300, .profile = options_.profile};
    return staged_plans(search_.model, search_.cluster, base.strategy, base.job, limits);
  }

  // Adds the best uniform pipelines as proposals, without the choices that stages with degrees of their own cannot have.
  void add_uniform() {
    std::size_t count = 0;
    for (const Candidate& candidate : search_.ranked) {
      const Point& p = candidate.point;
      const Recompute& recompute = candidate.strategy.recompute;
      if (p.pp == 1 || p.virtual_stages > 1 || p.cp > 1 || recompute.kind > RecomputeKind::Full || recompute.layers < 0)
        continue;
      if (count++ == kUniform) break;
      Strategy strategy = options_.base;
      strategy.batch.micro = p.micro_batch, strategy.recompute = recompute, strategy.pipeline.schedule = schedules().front();
      proposals_.push_back({with_stages(strategy, stages_of(candidate.strategy, layers_)), 0});
    }
  }

  // Refines the best strategy with the other overlaps.
  void vary(const Strategy& strategy) {
    if (is_fixed(options_, "overlap")) return;
    std::vector<Strategy> all;
    for (const bool gradients : {true, false})
      for (const bool p2p : {true, false}) {
        all.push_back(strategy);
        all.back().communication.overlap->gradients = gradients, all.back().communication.overlap->p2p = p2p;
      }
    refine_all(all);
  }

  // Steps join and double stages, so their results must be checked against a fixed tp and the limit on tp.
  bool may_be(const Strategy& strategy) const {
    return std::ranges::all_of(strategy.stages, [&](const StageDegrees& stage) {
      if (is_fixed(options_, "tp")) return stage.tp == options_.base.tp;
      return options_.max_tp == 0 || stage.tp <= options_.max_tp;
    });
  }

  std::vector<std::optional<double>> refine_all(const std::vector<Strategy>& strategies) {
    std::vector<std::optional<Candidate>> batch(strategies.size());
    search_.in_parallel(strategies.size(), [&](std::size_t i) {
      if (may_be(strategies[i])) batch[i] = search_.refined(strategies[i], point_of(strategies[i]));
    });
    std::vector<std::optional<double>> seconds;
    for (std::optional<Candidate>& candidate : batch) {
      seconds.push_back(candidate ? std::optional(candidate->score) : std::nullopt);
      refined_ += candidate.has_value();
      if (candidate) take_place(found_, *candidate);
    }
    return seconds;
  }

  std::vector<Candidate> faster() {
    std::erase_if(found_, [&](const Candidate& candidate) { return candidate.score >= winner_; });
    return std::move(found_);
  }

  const StagedSearch& search_;
  const SearchOptions& options_;
  double winner_ = 0, best_ = 0;
  std::vector<Proposal> proposals_ = {};
  std::vector<Candidate> found_ = {};  // best first, one of each family
  int layers_ = 0;                     // of the model, that a split counts
  int refined_ = 0;
};

}  // namespace

bool tries_stages(const Cluster& cluster, const SearchOptions& options) {
  const Strategy& s = options.base;
  if (!options.stages || (options.objective != Objective::Time && options.objective != Objective::Pareto)) return false;
  if (s.framework != "foreshard" || cluster.nodes.size() != 1 || gpu_count(cluster) < 2) return false;
  for (const char* path : {"pp", "dp"})
    if (is_fixed(options, path)) return false;
  const auto other = [&](const char* path, bool differs) { return is_fixed(options, path) && differs; };
  if (other("cp", s.cp != 1) || other("virtual_stages", s.virtual_stages != 1) || other("zero", s.zero.stage != 0))
    return false;
  if (other("zero_group", s.zero.group != 0) || other("sequence_parallel", s.sequence_parallel)) return false;
  if (other("tp", std::min(cluster.nodes.front().shape.gpus, gpu_count(cluster)) % s.tp != 0)) return false;
  if (other("schedule",
            s.pipeline.schedule && *s.pipeline.schedule != Schedule::OneFOneB && *s.pipeline.schedule != Schedule::GPipe))
    return false;
  if (s.communication.asynchronous) return false;  // its workers are alike
  if (!s.placement.empty() || s.optimizer.clip_norm.value_or(0) > 0 || s.optimizer.loss_scale == 0) return false;
  return s.pipeline.layer_split.empty() || s.pipeline.layer_split == "auto";
}

StagedResult search_stages(const StagedSearch& search) { return StagesSearching(search).run(); }

}  // namespace foreshard
