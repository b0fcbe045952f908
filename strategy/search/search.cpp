#include "strategy/search/search.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>

#include "strategy/cost/framework_preset.h"
#include "strategy/search/search_costs.h"
#include "strategy/search/search_experts.h"
#include "strategy/search/search_failures.h"
#include "strategy/search/search_framework.h"
#include "strategy/search/search_kept.h"
#include "strategy/search/search_nodes.h"
#include "strategy/search/search_offload.h"
#include "strategy/search/search_once.h"
#include "strategy/search/search_refine.h"
#include "strategy/search/search_relax.h"
#include "strategy/search/search_screening.h"
#include "strategy/search/search_space.h"
#include "strategy/search/search_splits.h"
#include "strategy/search/search_staged.h"
#include "strategy/search/search_threads.h"
#include "strategy/search/search_tries.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

constexpr std::size_t kPolished = 12;              // families whose variants are all refined
constexpr std::size_t kLastMoment = 4;             // families that are refined after an interrupt
constexpr std::chrono::seconds kLastMeasuring{2};  // after an interrupt, when nothing had been found before
constexpr int kLastPoints = 100'000;  // points that each thread screens after an interrupt, when none had been found before
constexpr int kFilled = 24;           // families whose memory is filled (recompute best), that screening keeps
constexpr std::size_t kFilledAtOnce =
    8;                                // of these, refined at once; the next ones only if one of them is faster than all before
constexpr int kRounds = 3;            // with a framework, whose memory the screen knows only roughly
constexpr std::size_t kRefilled = 4;  // of these, whose near variants are all refined
constexpr int kCellFamilies = 8;      // families of cells that screening keeps
constexpr std::size_t kCellsAtOnce = 4, kVaried = 1;  // of these, refined at once; whose variants are refined

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Searching {
 public:
  Searching(const Model& model, const Cluster& cluster, const SearchOptions& options)
      : model_(model), cluster_(cluster), options_(options), space_(search_space(model, cluster, options)) {
    const bool served = options.base.communication.asynchronous;  // screening knows replicas that wait for each other
    if (std::holds_alternative<Transformer>(model.shape) && !served)
      screen_.emplace(model, cluster, options.base, options.profile);
    if (screen_) costs_.emplace(*screen_, space_, model, cluster_, options);
    screening_.emplace(cluster_, options_, space_, screen_ ? &*screen_ : nullptr, costs_ ? &*costs_ : nullptr);
  }

  std::variant<SearchResult, Infeasible> run() {
    const auto begin = std::chrono::steady_clock::now();
    if (space_.grids.empty()) return empty_space("no degrees divide the GPUs, the layers, the heads and the global batch");
    if (costs_)
      in_parallel(costs_->jobs(), 0, 0.4, [&](std::size_t job, std::size_t) {
        at_point(costs_->point_of(job), [&] { costs_->measure(job, [this] { return stopped(); }); });
      });
    const auto measured = std::chrono::steady_clock::now();
    if (!screen_) most_ = wanted_ = 1 << 16;  // everything is refined
    auto answer = screen_and_refine();
    for (int round = 1; round < kRounds && screen_ && !stopped(); ++round) {
      const double excess = refiner_.least_excess();
      if (!screening_->expect_memory(excess)) break;
      answer = joined(std::move(answer), screen_and_refine());
    }
    if (auto* result = std::get_if<SearchResult>(&answer))
      result->measuring_s = std::chrono::duration<double>(measured - begin).count();
    return answer;
  }

 private:
  std::variant<SearchResult, Infeasible> screen_and_refine() {
    const auto begin = std::chrono::steady_clock::now();
    SearchResult result;
    refusals_.clear();
    std::vector<ScreeningTotals> tallies(threads(),
                                         ScreeningTotals(most_, kFilled, kCellFamilies, screen_ ? options_.sample : 0));
    screen_all(tallies);
    if (stopped() && !screening_->found()) finishing_ = true, screen_all(tallies);
    if (finishing_ && costs_ && !screening_->found())  // before a whole grid was measured
      costs_->measure_some(
          [&](std::size_t grid) {
            at_point(space_.grids[grid], [&] { screening_->screen(grid, tallies[0], kLastPoints); });
            return screening_->found();
          },
          [stop = std::chrono::steady_clock::now() + kLastMeasuring] { return std::chrono::steady_clock::now() > stop; });
    result.screening_s = seconds_since(begin);
    return finish(tallies, std::move(result));
  }

  // Two rounds over the same space, which expected different memory: what either found. Counts of points are those of the second.
  static std::variant<SearchResult, Infeasible> joined(std::variant<SearchResult, Infeasible> first,
                                                       std::variant<SearchResult, Infeasible> second) {
    auto* before = std::get_if<SearchResult>(&first);
    auto* after = std::get_if<SearchResult>(&second);
    if (!before || !after) return before ? std::move(first) : std::move(second);
    for (const Candidate& candidate : before->ranked) take_place(after->ranked, candidate);
    std::ranges::move(before->front, std::back_inserter(after->front));
    after->front = front_of(std::move(after->front));
    after->refined += before->refined, after->screening_s += before->screening_s;
    after->bound = std::min(after->bound, before->bound);
    return second;
  }

  // Calls work(), which is about this point and maybe others of its kind; a bug of ours in it is reported with this point, and the rest goes
  // on.
  void at_point(const Point& point, const std::function<void()>& work) const {
    isolated(
        options_, [&] { return strategy_at(options_.base, point, space_.layers); }, work);
  }

  bool stopped() const { return options_.cancel && options_.cancel->load(); }

  // work(index, thread) for all indices; the calling thread works, too, and reports.
  void in_parallel(std::size_t count, double from, double share, const SearchThreads::Work& work) {
    threads_.run(
        count, [&] { return finishing_ || !stopped(); }, work,
        [&](std::size_t next) {
          tell();
          if (options_.progress) options_.progress(from + share * static_cast<double>(next) / static_cast<double>(count));
        });
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

  std::size_t threads() const { return static_cast<std::size_t>(threads_.count()); }

  void screen_all(std::vector<ScreeningTotals>& tallies) {
    const std::vector<std::size_t> grids = scattered(space_.grids.size());
    const std::int64_t most = finishing_ ? kLastPoints : std::numeric_limits<std::int64_t>::max();
    in_parallel(grids.size(), 0.4, 0.3, [&](std::size_t i, std::size_t thread) {
      at_point(space_.grids[grids[i]], [&] { screening_->screen(grids[i], tallies[thread], most); });
    });
  }

  std::variant<SearchResult, Infeasible> finish(const std::vector<ScreeningTotals>& tallies, SearchResult result) {
    add_up(tallies, result);
    for (const ScreeningTotals& tally : tallies)
      for (const auto& [why, count] : tally.refusals) refusals_[why] += count;
    const std::vector<Family> families = merged(tallies, &ScreeningTotals::best, most_),
                              filled = merged(tallies, &ScreeningTotals::filled, kFilled),
                              cells = merged(tallies, &ScreeningTotals::cells, kCellFamilies);
    finishing_ = result.interrupted = stopped();  // an interrupted search still refines the best few that it has screened
    result.ranked = refine_best(families, static_cast<std::size_t>(wanted_), result);
    std::vector<Candidate> full = screen_ ? refine_apart(filled, kFilledAtOnce, kRefilled, result) : result.ranked;
    for (Candidate& cell : refine_cells(cells, result)) full.push_back(std::move(cell));
    if (!screen_) result.ranked = best_of_families(result.ranked);
    for (Candidate& staged : refine_stages(result)) full.push_back(std::move(staged));
    const std::vector<Family> thin = merged_bins(tallies);
    std::vector<Candidate> front = refine_best(thin, thin.size(), result);
    if (options_.objective == Objective::Pareto) {  // with the ranked candidates: none of them may beat the front
      std::move(full.begin(), full.end(), std::back_inserter(front));
      front.insert(front.end(), result.ranked.begin(), result.ranked.end());
    }
    result.front = front_of(std::move(front));
    if (!stopped()) result.sample = refine_all(merged_sample(tallies, options_.sample), result);
    result.interrupted |= stopped();
    if (result.ranked.empty() && result.interrupted) return Infeasible{.reason = "interrupted before a strategy was found"};
    if (result.ranked.empty()) return emptied_by(result, !families.empty() || !filled.empty() || !cells.empty());
    return result;
  }

  Infeasible emptied_by(const SearchResult& result, bool screened) const {
    if (const auto why = ruled_out(result, refusals_, screened, options_.base)) return *why;
    return refused_by_lower(model_, cluster_, strategy_at(options_.base, space_.grids.front(), space_.layers),
                            options_.profile);
  }

  // Refines families, best first, until `wanted` of them have a strategy that fits. Each batch has as many families as are still missing,
  // so that the answer does not depend on the threads. Then refines every variant of the best families, whose differences are too small
  // for the screen.
  std::vector<Candidate> refine_best(const std::vector<Family>& families, std::size_t wanted, SearchResult& result) {
    std::vector<std::pair<Candidate, const Family*>> found;
    const auto by_score = [](const auto& a, const auto& b) { return better(a.first, b.first); };
    if (finishing_) wanted = std::min(wanted, kLastMoment);
    for (std::size_t next = 0; next < families.size() && found.size() < wanted;) {
      const std::span some = std::span(families).subspan(next, std::min(families.size() - next, wanted - found.size()));
      std::vector<std::optional<Candidate>> batch = best_of_each(some, kNever, 0.7, 0.2, result);
      for (std::size_t i = 0; i < some.size(); ++i)
        if (batch[i]) found.emplace_back(std::move(*batch[i]), &some[i]);
      if (stopped() && !found.empty()) break;
      if (stopped() && !finishing_)  // interrupted before any of the batch was refined: tries the same batch once more
        finishing_ = true, wanted = std::min(wanted, kLastMoment);
      else
        next += some.size();
    }
    std::stable_sort(found.begin(), found.end(), by_score);
    if (!stopped()) polish(found, result);
    std::stable_sort(found.begin(), found.end(), by_score);
    std::vector<Candidate> candidates;
    for (auto& [candidate, family] : found) candidates.push_back(std::move(candidate));
    return candidates;
  }

  std::vector<std::optional<Candidate>> best_of_each(std::span<const Family> families, double enough, double from, double share,
                                                     SearchResult& result) {
    std::vector<std::optional<Candidate>> best(families.size());
    std::atomic<std::int64_t> refined{0};
    const auto look = [&](std::size_t i, std::size_t) { best[i] = best_that_fits(families[i], enough, refined); };
    in_parallel(best.size(), from, share, look);
    result.refined += refined;
    return best;
  }

  // Refines strategies that take long, with --recompute best or in cells: families whose screened score is near the best so far, `at_once` at
  // a time, then the near variants of the best `refilled` of them. Those that are better take their family's place in the ranking.
  std::vector<Candidate> refine_apart(const std::vector<Family>& families, std::size_t at_once, std::size_t refilled,
                                      SearchResult& result) {
    if (stopped() || finishing_) return {};
    const double enough = result.ranked.empty() ? kNever : result.ranked.front().score * Family::kNear;
    const auto far = [&](const Family& family) { return family.variants.front().score > enough; };
    const std::span near(families.begin(), std::find_if(families.begin(), families.end(), far));
    std::vector<Candidate> first;
    double winner = result.ranked.empty() ? kNever : result.ranked.front().score;
    for (std::size_t from = 0; from < near.size(); from += at_once) {
      auto batch = best_of_each(near.subspan(from, std::min(at_once, near.size() - from)), enough, 1, 0, result);
      for (auto& next : batch)
        if (next) first.push_back(std::move(*next));
      std::stable_sort(first.begin(), first.end(), better);
      if (!first.empty() && first.front().score >= winner) break;
      if (!first.empty()) winner = first.front().score;
    }
    std::vector<Candidate> all =
        refine_all(near_variants(families, std::span(first).first(std::min(first.size(), refilled)), winner, enough), result);
    std::move(first.begin(), first.end(), std::back_inserter(all));
    for (const Candidate& candidate : all) take_place(result.ranked, candidate);
    return all;
  }

  std::vector<Candidate> refine_cells(const std::vector<Family>& families, SearchResult& result) {
    std::vector<Candidate> all = refine_apart(families, kCellsAtOnce, kVaried, result), best = best_of_families(all);
    if (best.empty() || stopped()) return all;
    const double enough = result.ranked.front().score * Family::kNear;
    std::vector<std::pair<Strategy, Kept>> work;
    for (const Candidate& each : std::span(best).first(std::min(best.size(), kVaried)))
      if (each.score <= enough)
        for (const Strategy& strategy : variants_of_experts(model_, cluster_, options_, space_, each.strategy, each.point))
          work.emplace_back(strategy, Kept{.point = each.point, .screened = each.screened});
    std::vector<std::optional<Candidate>> batch(work.size());
    in_parallel(work.size(), 1, 0, [&](std::size_t i, std::size_t) { batch[i] = refined(work[i].first, work[i].second); });
    result.refined += static_cast<std::int64_t>(work.size());
    for (std::optional<Candidate>& candidate : batch)
      if (candidate) take_place(result.ranked, *candidate), all.push_back(std::move(*candidate));
    return all;
  }

  // Searches stages with degrees of their own, where they are allowed; those faster than the winner enter the ranking.
  std::vector<Candidate> refine_stages(SearchResult& result) {
    if (stopped() || finishing_ || result.ranked.empty() || !tries_stages(cluster_, options_)) return {};
    StagedSearch staging{.model = model_, .cluster = cluster_, .options = options_, .space = space_, .ranked = result.ranked};
    if (costs_) staging.costs = &*costs_;
    staging.stopped = [this] { return stopped(); };
    staging.in_parallel = [this](std::size_t count, const auto& work) {
      in_parallel(count, 1, 0, [&](std::size_t i, std::size_t) { work(i); });
    };
    staging.refined = [this](const Strategy& s, const Point& point) { return refined(s, {.point = point}); };
    StagedResult staged;
    at_point(result.ranked.front().point, [&] { staged = search_stages(staging); });
    result.refined += staged.refined;
    for (const Candidate& candidate : staged.faster) take_place(result.ranked, candidate);
    return std::move(staged.faster);
  }

  std::vector<Candidate> refine_all(const std::vector<Kept>& points, SearchResult& result) {
    std::vector<std::optional<Candidate>> batch(points.size());
    in_parallel(points.size(), 1, 0, [&](std::size_t i, std::size_t) { batch[i] = refined(points[i]); });
    result.refined += static_cast<std::int64_t>(points.size());
    std::vector<Candidate> fitting;
    for (auto& candidate : batch)
      if (candidate) fitting.push_back(std::move(*candidate));
    return fitting;
  }

  // Where GPUs differ splits decide more than all else, and what is tried on request may make any family the fastest.
  std::size_t polished(std::size_t all) const { return gpus_differ(cluster_) || !options_.tries.empty() ? all : kPolished; }

  // Where stages share NICs, selective recomputation may be faster although everything fits: slower backwards may contend less. Screening
  // skips such variants; this says for which families they are refined anyway.
  bool redoes_some(const Family& family) const {
    const auto redoes = [](const Kept& kept) { return kept.point.recompute != RecomputeKind::None; };
    return screen_ && screen_->shares_nics() && !find_runner(options_.base.framework) && bounded(options_) &&
           std::ranges::find(space_.recomputes, RecomputeKind::Selective) != space_.recomputes.end() &&
           std::ranges::none_of(family.variants, redoes);
  }

  void polish(std::vector<std::pair<Candidate, const Family*>>& found, SearchResult& result) {
    struct Job {
      std::size_t family = 0;
      const Kept* kept = nullptr;
      bool balanced = false;               // with the balanced layer split
      const Strategy* strategy = nullptr;  // instead of the one at the point
    };
    std::vector<std::vector<Strategy>> variants;
    std::vector<Job> work;
    std::vector<Kept> more;  // that were not screened
    more.reserve(4 * std::max(kPolished, found.size()));
    std::vector<Kept> more_of_variants;
    more_of_variants.reserve(found.size());
    for (std::size_t i = 0; i < std::min(found.size(), polished(found.size())); ++i) {
      const Family& family = *found[i].second;
      for (const Kept& kept : family.variants)
        if (i < kPolished && kept.point != found[i].first.point &&
            kept.score <= family.best_of(kept.point.zero).score * Family::kNear &&
            kept.score <= family.variants.front().score * Family::kNearStage)
          work.push_back({i, &kept, balances(kept)});
      const Point& best = found[i].first.point;
      if (i < kPolished && found[i].first.strategy.recompute.kind != RecomputeKind::None && tries_recompute_graphs(options_)) {
        more.push_back({.point = best, .screened = found[i].first.screened});
        more.back().point.recompute = RecomputeKind::Graph, more.back().point.recompute_layers = 0;
        work.push_back({i, &more.back()});
      }
      const bool balances = screen_ && best.pp > 1 && best.virtual_stages == 1 && splits_layers(options_) &&
                            found[i].first.strategy.pipeline.layer_split.empty();
      const auto try_also = [&](RecomputeKind recompute, bool balanced) {
        more.push_back({.point = best, .screened = found[i].first.screened});
        more.back().point.recompute = recompute;
        work.push_back({i, &more.back(), balanced});
      };
      if (balances) try_also(best.recompute, true);
      variants.push_back(tried_variants(options_, strategy_at(options_.base, best, space_.layers)));
      more_of_variants.push_back({.point = best, .screened = found[i].first.screened});
      if (i < kPolished)
        for (Strategy& s : variants_of_experts(model_, cluster_, options_, space_, found[i].first.strategy, best))
          variants.back().push_back(std::move(s));
      if (i >= kPolished || best.recompute != RecomputeKind::None || !redoes_some(family)) continue;
      try_also(RecomputeKind::Selective, false);
      if (balances) try_also(RecomputeKind::Selective, true);
    }
    for (std::size_t i = 0; i < variants.size(); ++i)
      for (const Strategy& strategy : variants[i])
        work.push_back({.family = i, .kept = &more_of_variants[i], .strategy = &strategy});
    std::vector<std::optional<Candidate>> batch(work.size());
    in_parallel(work.size(), 0.9, 0.1, [&](std::size_t i, std::size_t) {
      batch[i] = work[i].strategy ? refined(*work[i].strategy, *work[i].kept) : refined(*work[i].kept, work[i].balanced);
    });
    result.refined += static_cast<std::int64_t>(work.size());
    for (std::size_t i = 0; i < work.size(); ++i) {
      Candidate& best = found[work[i].family].first;
      if (batch[i]) best = better_of(std::move(best), std::move(*batch[i]));
    }
  }

  // Refines the variants of each ZeRO stage in order until one fits, and returns the best of these; of cells that nobody asked for, the
  // first that fits. Skips variants whose screened score is above `enough`.
  std::optional<Candidate> best_that_fits(const Family& family, double enough, std::atomic<std::int64_t>& count) const {
    std::optional<Candidate> best;
    std::array<bool, 4> done = {};  // by stage
    for (const Kept& kept : family.variants) {
      if (best && screening_->offers_cells(kept.point.schedule)) break;
      bool& stage_done = done.at(static_cast<std::size_t>(kept.point.zero));
      if (stage_done || kept.score > enough || (best && kept.score > family.variants.front().score * Family::kNearStage))
        continue;
      ++count;
      auto candidate = refined(kept, balances(kept));
      if (!candidate && balances(kept)) candidate = refined(kept);
      stage_done = candidate.has_value();
      if (candidate && (!best || candidate->score < best->score)) best = std::move(candidate);
    }
    return best;
  }

  // Whether the even split is so much slower by the screen that the balanced one is refined instead.
  bool balances(const Kept& kept) const {
    constexpr double kWorth = 0.02;
    return splits_layers(options_) && kept.screened.balanced > kWorth * kept.screened.time;
  }

  std::optional<Candidate> refined(const Kept& kept, bool balanced = false) const {
    Strategy strategy = strategy_at(options_.base, kept.point, space_.layers);
    if (balanced) strategy.pipeline.layer_split = "auto";
    if (!screen_ && kept.point.pp > 1 && splits_layers(options_)) {
      const auto split = [&] { strategy.pipeline.layer_split = splits_.of(strategy, kept.point); };
      if (!isolated(
              options_, [&] { return strategy; }, split))
        return {};
    }
    return refined(strategy, kept);
  }

  std::optional<Candidate> refined(const Strategy& strategy, const Kept& kept) const {
    auto candidate = refiner_.refined(strategy, point_of(strategy, kept.point), kept.screened);
    if (candidate && options_.found) {
      const std::scoped_lock lock(untold_mutex_);
      untold_.push_back(*candidate);
    }
    return candidate;
  }

  const Model& model_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  SearchSpace space_;
  Refiner refiner_{model_, cluster_, options_};
  std::map<std::string, std::int64_t> refusals_ = {};  // by the framework
  bool finishing_ = false;                             // interrupted, and the best so far is still to be found
  SearchThreads threads_{options_.threads};
  int most_ = options_.shortlist, wanted_ = options_.refine;  // families that screening keeps, and that are refined
  std::optional<Screen> screen_ = {};
  std::optional<SearchCosts> costs_ = {};  // with a screen
  std::optional<Screening> screening_ = {};
  mutable SearchSplits splits_{model_, cluster_, options_.profile};
  mutable std::mutex untold_mutex_ = {};
  mutable std::vector<Candidate> untold_ = {};  // refined by any thread; the calling thread passes them to options_.found
};

}  // namespace

std::variant<SearchResult, Infeasible> search_once(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  SearchOptions settled = options;
  settled.base = with_preset(model, options.base);
  if (!is_fixed(options, "delay_wgrad")) settled.base.pipeline.delay_wgrad = false;
  const auto on_all = [&](const Cluster& some, const SearchOptions& so) { return Searching(model, some, so).run(); };
  std::variant<SearchResult, Infeasible> answer = SearchResult{};
  if (auto empty = states_exceed_memory(model, cluster, settled.base))
    answer = *std::move(empty);
  else
    answer = on_all(cluster, settled);
  if (auto* result = std::get_if<SearchResult>(&answer)) {
    if (settled.offload) offload_too({model, cluster, settled, on_all}, *result);
    search_fewer_nodes({model, cluster, settled, on_all}, *result);
    return answer;
  }
  const bool stopped = options.cancel && options.cancel->load();
  if (auto away = settled.offload && !stopped ? search_offloaded({model, cluster, settled, on_all}) : std::nullopt) {
    away->without_host_memory = std::get<Infeasible>(answer).reason;
    return *std::move(away);
  }
  return answer;
}

}  // namespace foreshard
