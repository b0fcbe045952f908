#include "strategy/search.h"

#include <algorithm>
#include <array>
#include <map>
#include <thread>
#include <tuple>

#include "strategy/search_space.h"

namespace foreshard {

const char* name_of(Objective objective) { return objective_names()[static_cast<std::size_t>(objective)].c_str(); }
const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names = {"time", "memory", "cost", "energy", "pareto"};
  return names;
}
const std::vector<std::string>& searched_options() {
  static const std::vector<std::string> paths = {"tp",   "cp",        "pp",      "dp",       "virtual_stages",   "micro_batch",
                                                 "zero", "recompute", "overlap", "schedule", "sequence_parallel"};
  return paths;
}

namespace {

constexpr double kMemorySlack = 1.05;  // the screen's memory is this far off at most; refining decides exactly
constexpr int kBins = 128;             // of memory, for the Pareto front

double score(Objective objective, const Point& point, double time, double peak) {
  switch (objective) {
    case Objective::Memory: return peak;
    case Objective::Cost:
    case Objective::Energy: return time * point.tp * point.cp * point.pp * point.dp;
    case Objective::Time:
    case Objective::Pareto: return time;
  }
  return time;
}

struct Kept {
  double score = 0, time = 0;
  std::int64_t order = 0;  // where it stands in the space: equal scores keep one order whatever the threads do
  Point point = {};
  Screened screened = {};
  bool operator<(const Kept& other) const {
    return std::tie(score, time, order) < std::tie(other.score, other.time, other.order);
  }
};

// The best of what one thread has seen.
class Best {
 public:
  explicit Best(int most) : most_(static_cast<std::size_t>(std::max(1, most))) {}
  double worst() const { return heap_.size() < most_ ? 1e300 : heap_.front().score; }
  void offer(const Kept& kept) {
    if (heap_.size() >= most_) {
      if (!(kept < heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    heap_.push_back(kept);
    std::push_heap(heap_.begin(), heap_.end());
  }
  const std::vector<Kept>& all() const { return heap_; }

 private:
  std::size_t most_;
  std::vector<Kept> heap_ = {};
};

struct Tally {
  explicit Tally(int most) : best(most) {}
  Best best;
  std::array<std::optional<Kept>, kBins> bins = {};  // fastest by memory
  std::int64_t enumerated = 0, evaluated = 0;
  PrunedBy pruned = {};
};

using ShapeKey = std::tuple<int, int, std::int64_t, bool, RecomputeKind>;

class Searching {
 public:
  Searching(const Model& model, const Cluster& cluster, const SearchOptions& options)
      : model_(model), cluster_(cluster), options_(options), space_(search_space(model, cluster, options)) {
    threads_ = options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (std::holds_alternative<Transformer>(model.shape)) screen_.emplace(model, cluster, options.base);
  }

  std::variant<SearchResult, Infeasible> run() {
    if (space_.grids.empty()) return nothing("no degrees divide the GPUs, the layers, the heads and the global batch");
    measure();
    // Without a screen everything is refined.
    if (!screen_) most_ = wanted_ = 1 << 16;
    std::vector<Tally> tallies(static_cast<std::size_t>(threads_), Tally(most_));
    in_parallel(space_.grids.size(), 0.4, 0.3, [&](std::size_t grid, std::size_t thread) { screen(grid, tallies[thread]); });
    return finish(tallies);
  }

 private:
  bool stopped() const { return options_.cancel && options_.cancel->load(); }

  // work(index, thread) for all indices; the calling thread works, too, and reports.
  template <class Work>
  void in_parallel(std::size_t count, double from, double share, Work work) {
    std::atomic<std::size_t> next{0};
    const auto loop = [&](std::size_t thread) {
      for (std::size_t i = next++; i < count && !stopped(); i = next++) {
        work(i, thread);
        if (thread == 0 && options_.progress)
          options_.progress(from + share * static_cast<double>(i + 1) / static_cast<double>(count));
      }
    };
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads_; ++thread) others.emplace_back(loop, static_cast<std::size_t>(thread));
    loop(0);
  }

  ShapeKey key(const Point& p) const { return {p.tp, p.cp, p.micro_batch, p.sequence_parallel, p.recompute}; }

  template <class Visit>
  void for_each_shape(const Point& grid, Visit visit) const {
    Point point = grid;
    for (const std::int64_t micro_batch : micro_batches(space_, grid))
      for (const bool sp : space_.sequence_parallels) {
        if (sp && grid.tp == 1) continue;
        for (const RecomputeKind recompute : space_.recomputes) {
          point.micro_batch = micro_batch, point.sequence_parallel = sp, point.recompute = recompute;
          visit(point);
        }
      }
  }

  void measure() {
    if (!screen_) return;
    grids_.resize(space_.grids.size());
    in_parallel(space_.grids.size(), 0, 0.1, [&](std::size_t i, std::size_t) { grids_[i] = screen_->grid(space_.grids[i]); });
    std::vector<Point> points;
    for (const Point& grid : space_.grids)
      for_each_shape(grid, [&](const Point& point) {
        if (shape_of_.try_emplace(key(point), points.size()).second) points.push_back(point);
      });
    shapes_.resize(points.size());
    in_parallel(points.size(), 0.1, 0.3, [&](std::size_t i, std::size_t) { shapes_[i] = screen_->shape(points[i]); });
  }

  void screen(std::size_t grid, Tally& tally) const {
    std::int64_t order = static_cast<std::int64_t>(grid) << 32;
    for_each_shape(space_.grids[grid], [&](const Point& shaped) {
      const std::optional<ShapeCosts>* shape = screen_ ? &shapes_[shape_of_.at(key(shaped))] : nullptr;
      for (const int v : virtual_stages(space_, shaped)) {
        Point point = shaped;
        point.virtual_stages = v;
        const std::vector<Schedule> schedules = schedules_for(space_, point);
        if (schedules.empty() || (shape && !*shape)) {
          ++tally.enumerated, ++tally.pruned.shape;
          continue;
        }
        screen_rest(point, schedules, shape ? &**shape : nullptr, grid, order, tally);
      }
    });
  }

  // The loops that need nothing but arithmetic.
  void screen_rest(Point point, const std::vector<Schedule>& schedules, const ShapeCosts* shape, std::size_t grid,
                   std::int64_t& order, Tally& tally) const {
    const bool shards = point.dp * point.cp > 1;
    const bool bounded =
        options_.prune && shape && options_.objective != Objective::Memory && options_.objective != Objective::Pareto;
    bool hopeless = false;
    if (bounded) {
      point.zero = 0, point.overlap_parameters = false, point.schedule = schedules.front();
      const double bound = screen_->at(point, *shape, grids_[grid]).bound;
      hopeless = score(options_.objective, point, bound, 0) > tally.best.worst();
    }
    for (const Schedule schedule : schedules)
      for (const std::int8_t zero : space_.zeros) {
        if (zero > 0 && !shards && space_.zeros.size() > 1) continue;
        for (const bool overlap : space_.overlaps) {
          if (overlap && zero == 0 && space_.overlaps.size() > 1) continue;
          ++tally.enumerated, ++order;
          point.schedule = schedule, point.zero = zero, point.overlap_parameters = overlap;
          if (hopeless) {
            ++tally.pruned.bound;
            continue;
          }
          look_at(point, shape, grid, order, tally);
        }
      }
  }

  void look_at(const Point& point, const ShapeCosts* shape, std::size_t grid, std::int64_t order, Tally& tally) const {
    Kept kept{.order = order, .point = point};
    if (shape) {
      kept.screened = screen_->at(point, *shape, grids_[grid]);
      ++tally.evaluated;
      if (kept.screened.peak > screen_->capacity() * kMemorySlack) {
        ++tally.pruned.memory;
        return;
      }
    }
    kept.time = kept.screened.time;
    kept.score = score(options_.objective, point, kept.time, kept.screened.peak);
    tally.best.offer(kept);
    if (options_.objective != Objective::Pareto || !shape) return;
    const auto bin = static_cast<std::size_t>(
        std::clamp(kept.screened.peak / screen_->capacity() * (kBins - 1), 0.0, static_cast<double>(kBins - 1)));
    if (!tally.bins[bin] || kept < *tally.bins[bin]) tally.bins[bin] = kept;
  }

  Infeasible nothing(const std::string& why) const {
    return {.reason = "the space is empty: " + why,
            .would_help = {"fewer --fix", "a larger cluster", "another --global-batch"}};
  }

  std::variant<SearchResult, Infeasible> finish(std::vector<Tally>& tallies) {
    SearchResult result;
    std::vector<Kept> kept;
    std::array<std::optional<Kept>, kBins> bins = {};
    for (const Tally& tally : tallies) {
      kept.insert(kept.end(), tally.best.all().begin(), tally.best.all().end());
      for (std::size_t bin = 0; bin < bins.size(); ++bin)
        if (tally.bins[bin] && (!bins[bin] || *tally.bins[bin] < *bins[bin])) bins[bin] = tally.bins[bin];
      result.enumerated += tally.enumerated, result.evaluated += tally.evaluated;
      result.pruned.shape += tally.pruned.shape, result.pruned.memory += tally.pruned.memory;
      result.pruned.bound += tally.pruned.bound;
    }
    std::sort(kept.begin(), kept.end());
    if (kept.size() > static_cast<std::size_t>(most_)) kept.resize(static_cast<std::size_t>(most_));
    result.ranked = refine_best(kept, static_cast<std::size_t>(wanted_), result);
    std::vector<Kept> thin;
    for (const auto& bin : bins)
      if (bin) thin.push_back(*bin);
    result.front = front_of(refine_best(thin, thin.size(), result));
    result.interrupted = stopped();
    if (result.ranked.empty()) return emptied_by(result, kept.empty());
    return result;
  }

  Infeasible emptied_by(const SearchResult& result, bool screened_out) const {
    if (result.pruned.memory > 0 || !screened_out)
      return nothing("all " + std::to_string(result.enumerated) + " strategies need more memory than " +
                     std::to_string(static_cast<int>(100 * (1 - options_.base.reserve))) + " % of a GPU");
    const auto answer = lower(model_, cluster_, strategy_at(options_.base, space_.grids.front()), {.ignore_memory = true});
    if (const auto* refused = std::get_if<Infeasible>(&answer)) return nothing("for example: " + refused->reason);
    return nothing("no schedule takes these degrees with this batch");
  }

  // Batches of as many as are still missing, best first, so that the answer does not depend on the threads.
  std::vector<Candidate> refine_best(const std::vector<Kept>& kept, std::size_t wanted, SearchResult& result) {
    std::vector<Candidate> found;
    for (std::size_t next = 0; next < kept.size() && found.size() < wanted;) {
      const std::size_t count = std::min(kept.size() - next, wanted - found.size());
      std::vector<std::optional<Candidate>> batch(count);
      in_parallel(count, 0.7, 0.3, [&](std::size_t i, std::size_t) { batch[i] = refined(kept[next + i]); });
      for (auto& candidate : batch)
        if (candidate) found.push_back(std::move(*candidate));
      next += count;
      result.refined += static_cast<std::int64_t>(count);
      if (stopped() && !found.empty()) break;
    }
    std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
    return found;
  }

  std::optional<Candidate> refined(const Kept& kept) const {
    const auto answer = lower(model_, cluster_, strategy_at(options_.base, kept.point));
    if (std::holds_alternative<Infeasible>(answer)) return {};
    const Lowered& lowered = std::get<Lowered>(answer);
    Candidate candidate{.point = kept.point, .strategy = lowered.strategy, .screened = kept.screened};
    candidate.estimate = refine(lowered, cluster_);
    candidate.score = score(options_.objective, kept.point, candidate.estimate.time.value,
                            static_cast<double>(candidate.estimate.peak.value));
    return candidate;
  }

  static std::vector<Candidate> front_of(std::vector<Candidate> all) {  // sorted by time
    std::vector<Candidate> front;
    for (Candidate& candidate : all)
      if (front.empty() || candidate.estimate.peak < front.back().estimate.peak) front.push_back(std::move(candidate));
    return front;
  }

  const Model& model_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  SearchSpace space_;
  int threads_ = 1, most_ = options_.shortlist, wanted_ = options_.refine;  // kept by screening, refined
  std::optional<Screen> screen_ = {};
  std::vector<GridCosts> grids_ = {};
  std::map<ShapeKey, std::size_t> shape_of_ = {};
  std::vector<std::optional<ShapeCosts>> shapes_ = {};
};

}  // namespace

std::variant<SearchResult, Infeasible> search(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  return Searching(model, cluster, options).run();
}

void rerank(std::vector<Candidate>& ranked, int top, Objective objective,
            const std::function<std::optional<double>(const Candidate&)>& simulate) {
  const std::size_t count = std::min(ranked.size(), static_cast<std::size_t>(std::max(0, top)));
  const auto better = [](const Candidate& a, const Candidate& b) { return a.score < b.score; };
  for (;;) {
    std::stable_sort(ranked.begin(), ranked.end(), better);
    const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(count);
    const auto next = std::find_if(ranked.begin(), end, [](const Candidate& c) { return !c.simulated; });
    if (next == end) return;
    next->simulated = simulate(*next);
    if (!next->simulated) return;
    next->score = score(objective, next->point, *next->simulated, static_cast<double>(next->estimate.peak.value));
  }
}

}  // namespace foreshard
