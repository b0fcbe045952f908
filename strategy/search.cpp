#include "strategy/search.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "strategy/search_costs.h"
#include "strategy/search_framework.h"
#include "strategy/search_kept.h"
#include "strategy/search_space.h"

namespace foreshard {

namespace {

constexpr double kMemorySlack = 1.05;   // the screen's memory is this far off at most; refining decides exactly
constexpr std::size_t kVariants = 16;   // of a family, that screening keeps
constexpr std::size_t kOfZero = 6;      // of these, with one ZeRO stage
constexpr std::size_t kPolished = 12;   // families whose variants are all refined
constexpr std::size_t kLastMoment = 4;  // families that are refined after an interrupt
constexpr int kLastPoints = 100'000;    // points that each thread screens after an interrupt, when none had been found before
constexpr double kNear = 1.04;          // variants this far behind the best of their family and ZeRO stage have lost
constexpr double kNearStage = 1.2;      // ZeRO stages this far behind the best of their family have lost

int threads_of(const SearchOptions& options) {
  return options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

class Searching {
 public:
  Searching(const Model& model, const Cluster& cluster, const SearchOptions& options)
      : model_(model), cluster_(cluster), options_(options), space_(search_space(model, cluster, options)) {
    threads_ = threads_of(options);
    arena_.initialize(threads_);
    if (std::holds_alternative<Transformer>(model.shape)) screen_.emplace(model, cluster, options.base, options.profile);
    if (screen_) costs_.emplace(*screen_, space_, cluster_);
  }

  std::variant<SearchResult, Infeasible> run() {
    if (space_.grids.empty()) return nothing("no degrees divide the GPUs, the layers, the heads and the global batch");
    if (costs_) in_parallel(costs_->jobs(), 0, 0.4, [&](std::size_t job, std::size_t) { costs_->measure(job); });
    // Without a screen everything is refined.
    if (!screen_) most_ = wanted_ = 1 << 16;
    std::vector<Tally> tallies(static_cast<std::size_t>(threads_), Tally(most_, screen_ ? options_.sample : 0));
    screen_all(tallies);
    if (stopped() && !found_) {
      finishing_ = true;
      screen_all(tallies);
    }
    return finish(tallies);
  }

 private:
  bool stopped() const { return options_.cancel && options_.cancel->load(); }

  // work(index, thread) for all indices; the calling thread works, too, and reports.
  template <class Work>
  void in_parallel(std::size_t count, double from, double share, Work work) {
    std::atomic<std::size_t> next{0};
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(threads_));
    const auto loop = [&](std::size_t thread) {
      try {
        for (std::size_t i = next++; i < count && (finishing_ || !stopped()); i = next++) {
          work(i, thread);
          if (thread == 0) tell();
          if (thread == 0 && options_.progress)
            options_.progress(from + share * static_cast<double>(i + 1) / static_cast<double>(count));
        }
      } catch (...) {  // told by the calling thread
        failures[thread] = std::current_exception();
        next = count;
      }
    };
    arena_.execute([&] {
      tbb::task_group others;
      for (int thread = 1; thread < threads_; ++thread) others.run([&loop, thread] { loop(static_cast<std::size_t>(thread)); });
      loop(0);
      others.wait();
    });
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    tell();
  }

  void tell() {
    std::vector<Candidate> news;
    {
      const std::scoped_lock lock(untold_mutex_);
      news.swap(untold_);
    }
    for (const Candidate& candidate : news) options_.found(candidate);
  }

  // Of a point; with full recomputation of as many layers as do not fit, without it (`shape`) and with it.
  struct Costs {
    const ShapeCosts* shape = nullptr;
    const ShapeCosts* redone = nullptr;
  };

  void screen_all(std::vector<Tally>& tallies) {
    const std::vector<std::size_t> grids = scattered(space_.grids.size());
    in_parallel(grids.size(), 0.4, 0.3, [&](std::size_t i, std::size_t thread) { screen(grids[i], tallies[thread]); });
  }

  // After an interrupt: some of what has been measured, until something is found.
  bool enough(const Tally& tally) const { return finishing_ && found_ && tally.enumerated > kLastPoints; }

  void screen(std::size_t grid, Tally& tally) const {
    std::int64_t order = static_cast<std::int64_t>(grid) << 32;
    Point point = space_.grids[grid];
    if (zero_groups_for(space_, point).empty()) ++tally.enumerated, ++tally.pruned.shape;
    for (const std::int64_t micro_batch : micro_batches(space_, point)) {
      point.micro_batch = micro_batch;
      for (const int v : virtual_stages(space_, point)) {
        if (enough(tally)) return;
        point.virtual_stages = v;
        const std::vector<Schedule> schedules = schedules_for(space_, point);
        if (schedules.empty()) ++tally.enumerated, ++tally.pruned.shape;
        for (const Schedule schedule : schedules) {
          point.schedule = schedule;
          screen_family(point, grid, order, tally);
        }
      }
    }
  }

  void screen_family(const Point& start, std::size_t grid, std::int64_t& order, Tally& tally) const {
    Family family;
    for_each_shape(space_, cluster_, start, [&](Point point) {
      const ShapeCosts* costs = costs_ ? costs_->shape(point) : nullptr;
      if (costs && !costs_->measured(grid)) return;  // interrupted before
      if (costs_ && !costs) {
        ++tally.enumerated, ++tally.pruned.shape;
        return;
      }
      Point none = point;
      none.recompute = RecomputeKind::None;
      for (const int layers : recompute_layers(space_, point)) {
        point.recompute_layers = layers;
        if (layers == 0 || !costs) {
          screen_rest(point, {costs}, grid, order, family, tally);
          continue;
        }
        const ShapeCosts* kept = costs_->shape(none);
        if (!kept) return;  // interrupted before
        if (layers < 0) {
          screen_rest(point, {kept, costs}, grid, order, family, tally);
          continue;
        }
        const double all = static_cast<double>(space_.layers) / (point.pp * point.virtual_stages), n = layers;
        const ShapeCosts mixed = partly_redone(*kept, *costs, all, {n, n, n, n});
        screen_rest(point, {&mixed}, grid, order, family, tally);
      }
    });
    if (!family.variants.empty()) found_ = true;
    tally.best.offer(std::move(family));
  }

  // The loops that need nothing but arithmetic.
  void screen_rest(Point point, const Costs& costs, std::size_t grid, std::int64_t& order, Family& family, Tally& tally) const {
    const bool bounded =
        options_.prune && costs.shape && options_.objective != Objective::Memory && options_.objective != Objective::Pareto;
    bool hopeless = false;
    if (bounded) {
      point.zero_group = space_.zero_groups.empty() ? 0 : space_.zero_groups.front();
      const double bound = screen_->at(point, *costs.shape, costs_->grid(grid, point)).bound;
      hopeless = score(options_.objective, point, bound, 0) > tally.best.worst();
    }
    for (const std::int8_t zero : zeros_for(space_, point)) {
      point.zero = zero;
      const std::vector<Overlap> overlaps = overlaps_for(space_, point);
      for (const int group : zero_groups_for(space_, point)) {
        if (zero == 0 && group != 0 && space_.zero_groups.empty()) break;
        point.zero_group = group;
        const GridCosts* costs_of_grid = costs.shape ? &costs_->grid(grid, point) : nullptr;
        for (const Overlap& overlap : overlaps) {
          ++tally.enumerated, ++order;
          point.overlap_gradients = overlap.gradients, point.overlap_parameters = overlap.parameters;
          point.overlap_p2p = overlap.p2p;
          if (hopeless)
            ++tally.pruned.bound;
          else
            look_at(point, costs, costs_of_grid, order, family, tally);
        }
      }
    }
  }

  void look_at(const Point& point, const Costs& costs, const GridCosts* grid, std::int64_t order, Family& family,
               Tally& tally) const {
    Kept kept{.order = order, .point = point};
    const bool named = !options_.base.recompute.per_stage.empty() || !options_.base.recompute.only.empty();
    const char* refused = !runner_ ? nullptr : named ? "its stages recompute alike" : refused_by(*runner_, point);
    if (refused) ++tally.pruned.framework, ++tally.refusals[refused];
    if (costs.shape) {
      kept.screened =
          costs.redone ? screen_->filled(point, *costs.shape, *costs.redone, *grid) : screen_->at(point, *costs.shape, *grid);
      ++tally.evaluated;
    }
    kept.time = kept.screened.time;
    kept.score = score(options_.objective, point, kept.time, kept.screened.peak);
    const bool fits = !costs.shape || kept.screened.peak <= screen_->capacity() * kMemorySlack;
    if (refused && fits) tally.without_framework = std::min(tally.without_framework, kept.score);
    if (refused) return;
    if (!fits) {
      ++tally.pruned.memory;
      tally.without_memory_limit = std::min(tally.without_memory_limit, kept.score);
      return;
    }
    tally.sample.offer(kept);
    if (!costs.shape) {  // nothing is known yet: every point is refined
      found_ = true;
      return tally.best.offer({{kept}});
    }
    family.offer(kept, kVariants, kOfZero);
    if (options_.objective != Objective::Pareto) return;
    const auto bin = static_cast<std::size_t>(
        std::clamp(kept.screened.peak / screen_->capacity() * (kMemoryBins - 1), 0.0, static_cast<double>(kMemoryBins - 1)));
    if (!tally.bins[bin] || kept < *tally.bins[bin]) tally.bins[bin] = kept;
  }

  Infeasible nothing(const std::string& why) const {
    return {.reason = "the space is empty: " + why,
            .would_help = {"fewer --fix", "a larger cluster", "another --global-batch"}};
  }

  std::variant<SearchResult, Infeasible> finish(const std::vector<Tally>& tallies) {
    SearchResult result;
    std::array<std::optional<Kept>, kMemoryBins> bins = {};
    for (const Tally& tally : tallies) {
      for (std::size_t bin = 0; bin < bins.size(); ++bin)
        if (tally.bins[bin] && (!bins[bin] || *tally.bins[bin] < *bins[bin])) bins[bin] = tally.bins[bin];
      result.enumerated += tally.enumerated, result.evaluated += tally.evaluated;
      result.pruned.shape += tally.pruned.shape, result.pruned.memory += tally.pruned.memory;
      result.pruned.bound += tally.pruned.bound, result.pruned.framework += tally.pruned.framework;
      for (const auto& [why, count] : tally.refusals) refusals_[why] += count;
      for (const auto& [best, found] : {std::pair(&result.without_memory_limit, tally.without_memory_limit),
                                        {&result.without_framework, tally.without_framework}})
        if (found < best->value_or(kNever)) *best = found;
    }
    const std::vector<Family> families = merged(tallies, most_);
    result.interrupted = stopped();
    finishing_ = result.interrupted;  // the best so far is worth a moment
    result.ranked = refine_best(families, static_cast<std::size_t>(wanted_), result);
    std::vector<Family> thin;
    for (const auto& bin : bins)
      if (bin) thin.push_back({{*bin}});
    result.front = front_of(refine_best(thin, thin.size(), result));
    if (!stopped()) result.sample = refine_sample(tallies, result);
    result.interrupted |= stopped();
    if (result.ranked.empty() && result.interrupted) return Infeasible{.reason = "interrupted before a strategy was found"};
    if (result.ranked.empty()) return emptied_by(result, families.empty());
    return result;
  }

  std::vector<Candidate> refine_sample(const std::vector<Tally>& tallies, SearchResult& result) {
    Sample all(options_.sample);
    for (const Tally& tally : tallies) all.offer(tally.sample);
    std::vector<Kept> points;
    for (const auto& [hash, kept] : all.all()) points.push_back(kept);
    std::sort(points.begin(), points.end(), [](const Kept& a, const Kept& b) { return a.order < b.order; });
    std::vector<std::optional<Candidate>> batch(points.size());
    in_parallel(points.size(), 1, 0, [&](std::size_t i, std::size_t) { batch[i] = refined(points[i]); });
    result.refined += static_cast<std::int64_t>(points.size());
    std::vector<Candidate> fitting;
    for (auto& candidate : batch)
      if (candidate) fitting.push_back(std::move(*candidate));
    return fitting;
  }

  Infeasible emptied_by(const SearchResult& result, bool screened_out) const {
    if (result.pruned.memory == 0 && result.pruned.framework > 0) {
      const auto most = std::max_element(refusals_.begin(), refusals_.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      return nothing("--framework " + options_.base.framework + " runs none of its strategies: " + most->first);
    }
    if (result.pruned.memory > 0 || !screened_out)
      return nothing("all " + std::to_string(result.enumerated) + " strategies need more memory than " +
                     std::to_string(static_cast<int>(100 * (1 - options_.base.reserve))) + " % of a GPU");
    const auto answer = lower(model_, cluster_, strategy_at(options_.base, space_.grids.front(), space_.layers),
                              {.ignore_memory = true, .profile = options_.profile});
    if (const auto* refused = std::get_if<Infeasible>(&answer)) return nothing("for example: " + refused->reason);
    return nothing("no schedule takes these degrees with this batch");
  }

  // Batches of as many as are still missing, best first, so that the answer does not depend on the threads. Then every variant
  // of the best families: what decides among them is too small for the screen.
  std::vector<Candidate> refine_best(const std::vector<Family>& families, std::size_t wanted, SearchResult& result) {
    std::vector<std::pair<Candidate, const Family*>> found;
    const auto better = [](const auto& a, const auto& b) { return a.first.score < b.first.score; };
    if (finishing_) wanted = std::min(wanted, kLastMoment);
    for (std::size_t next = 0; next < families.size() && found.size() < wanted;) {
      const std::size_t count = std::min(families.size() - next, wanted - found.size());
      std::vector<std::optional<Candidate>> batch(count);
      std::atomic<std::int64_t> refined{0};
      in_parallel(count, 0.7, 0.2, [&](std::size_t i, std::size_t) { batch[i] = best_that_fits(families[next + i], refined); });
      for (std::size_t i = 0; i < count; ++i)
        if (batch[i]) found.emplace_back(std::move(*batch[i]), &families[next + i]);
      result.refined += refined;
      if (stopped() && !found.empty()) break;
      if (stopped() && !finishing_)  // before any of them was looked at: once more
        finishing_ = true, wanted = std::min(wanted, kLastMoment);
      else
        next += count;
    }
    std::stable_sort(found.begin(), found.end(), better);
    if (!stopped()) polish(found, result);
    std::stable_sort(found.begin(), found.end(), better);
    std::vector<Candidate> candidates;
    for (auto& [candidate, family] : found) candidates.push_back(std::move(candidate));
    return candidates;
  }

  void rate(Candidate& candidate, const Lowered& lowered) const {
    candidate.estimate = refine(lowered, cluster_);
    candidate.score = score(options_.objective, candidate.point, candidate.estimate.time.value,
                            static_cast<double>(candidate.estimate.peak.value));
  }

  void polish(std::vector<std::pair<Candidate, const Family*>>& found, SearchResult& result) {
    struct Job {
      std::size_t family = 0;
      const Kept* kept = nullptr;
      bool balanced = false;  // stages as long as their own layers take
    };
    std::vector<Job> work;
    std::vector<Kept> more;  // that were not screened
    more.reserve(2 * kPolished);
    for (std::size_t i = 0; i < std::min(found.size(), kPolished); ++i) {
      const Family& family = *found[i].second;
      for (const Kept& kept : family.variants)
        if (kept.point != found[i].first.point && kept.score <= family.best_of(kept.point.zero).score * kNear &&
            kept.score <= family.variants.front().score * kNearStage)
          work.push_back({i, &kept});
      const Point& best = found[i].first.point;
      if (best.recompute != RecomputeKind::None && tries_schedules()) {
        more.push_back({.point = best, .screened = found[i].first.screened});
        more.back().point.recompute = RecomputeKind::Graph, more.back().point.recompute_layers = 0;
        work.push_back({i, &more.back()});
      }
      if (best.pp == 1 || best.virtual_stages > 1 || !options_.base.layer_split.empty() || !takes_any_split()) continue;
      more.push_back({.point = best, .screened = found[i].first.screened});
      work.push_back({i, &more.back(), true});
    }
    std::vector<std::optional<Candidate>> batch(work.size());
    in_parallel(work.size(), 0.9, 0.1,
                [&](std::size_t i, std::size_t) { batch[i] = refined(*work[i].kept, work[i].balanced); });
    result.refined += static_cast<std::int64_t>(work.size());
    for (std::size_t i = 0; i < work.size(); ++i) {
      Candidate& best = found[work[i].family].first;
      if (batch[i] && batch[i]->score < best.score) best = std::move(*batch[i]);
    }
  }

  // Of each ZeRO stage the first that fits, and of these the best.
  std::optional<Candidate> best_that_fits(const Family& family, std::atomic<std::int64_t>& count) const {
    std::optional<Candidate> best;
    std::array<bool, 4> done = {};  // by stage
    for (const Kept& kept : family.variants) {
      bool& stage_done = done.at(static_cast<std::size_t>(kept.point.zero));
      if (stage_done || (best && kept.score > family.variants.front().score * kNearStage)) continue;
      ++count;
      auto candidate = refined(kept);
      stage_done = candidate.has_value();
      if (candidate && (!best || candidate->score < best->score)) best = std::move(candidate);
    }
    return best;
  }

  // The frameworks recompute layers or modules, not what is best inside a layer; nor is it the least memory.
  bool tries_schedules() const {
    const bool fixed = std::find(options_.fixed.begin(), options_.fixed.end(), "recompute") != options_.fixed.end();
    return options_.schedules && !fixed && options_.base.framework == "foreshard" && options_.objective != Objective::Memory;
  }

  // DeepSpeed cuts by parameters or evenly.
  bool takes_any_split() const { return options_.balance && runner_ != Runner::DeepSpeed; }

  std::optional<Candidate> refined(const Kept& kept, bool balanced = false) const {
    Strategy strategy = strategy_at(options_.base, kept.point, space_.layers);
    if (balanced) strategy.layer_split = "auto";
    const auto answer = lower(model_, cluster_, strategy, {.profile = options_.profile});
    if (std::holds_alternative<Infeasible>(answer)) return {};
    const Lowered& lowered = std::get<Lowered>(answer);
    Candidate candidate{.point = kept.point, .strategy = lowered.strategy, .screened = kept.screened};
    rate(candidate, lowered);
    if (options_.found) {
      const std::scoped_lock lock(untold_mutex_);
      untold_.push_back(candidate);
    }
    return candidate;
  }

  const Model& model_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  SearchSpace space_;
  std::optional<Runner> runner_ = find_runner(options_.base.framework);
  std::map<std::string, std::int64_t> refusals_ = {};  // by the framework
  bool finishing_ = false;                             // interrupted, and the best so far is still to be found
  mutable std::atomic<bool> found_ = false;            // any point that seems to fit
  tbb::global_control limit_{tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads_of(options_))};
  tbb::task_arena arena_ = {};
  int threads_ = 1, most_ = options_.shortlist, wanted_ = options_.refine;  // kept by screening, refined
  std::optional<Screen> screen_ = {};
  std::optional<SearchCosts> costs_ = {};  // with a screen
  mutable std::mutex untold_mutex_ = {};
  mutable std::vector<Candidate> untold_ = {};  // refined by any thread, for the calling thread to tell
};

}  // namespace

std::variant<SearchResult, Infeasible> search(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  // The threads end with the search: worker processes are forked later, and a fork takes only its own thread along.
  tbb::task_scheduler_handle threads{tbb::attach{}};
  auto answer = Searching(model, cluster, options).run();
  tbb::finalize(threads, std::nothrow);
  return answer;
}

}  // namespace foreshard
