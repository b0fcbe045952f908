// search against the slow obvious answer: refine every strategy of a small space.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/cluster_file/cluster_file.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"
#include "tests/strategy/support_search.h"

namespace foreshard::search_enumeration_test {

namespace {

// Whether a space with these options holds a point, written down once more.
bool holds(const Point& p, const Point& base, const std::vector<std::string>& fixed, int depth, std::int64_t batch) {
  const auto is_fixed = [&](const char* path) { return std::find(fixed.begin(), fixed.end(), path) != fixed.end(); };
  const bool replicas = p.dp > 1, pipeline = p.pp > 1, tensor = p.tp > 1;
  if (p.pp > depth || batch % (p.dp * p.micro_batch) != 0) return false;
  if (p.virtual_stages > 1 && (depth % (p.pp * p.virtual_stages) != 0 || !pipeline || p.schedule == Schedule::GPipe))
    return false;
  if (p.schedule == Schedule::GPipe && !pipeline) return false;
  if (p.sequence_parallel && !tensor) return false;
  if (p.zero > 0 && !replicas && !is_fixed("zero")) return false;
  if (is_fixed("zero_group") ? p.zero_group != 0
                             : p.zero_group > 0 && (p.zero == 0 || p.zero_group >= p.dp || p.dp % p.zero_group != 0))
    return false;
  if (is_fixed("overlap")) {
    if (p.overlap_gradients != base.overlap_gradients || p.overlap_parameters || !p.overlap_p2p) return false;
  } else if ((!p.overlap_gradients && !replicas) || (p.overlap_parameters && (p.zero == 0 || !replicas)) ||
             (!p.overlap_p2p && !pipeline)) {
    return false;
  }
  if (p.recompute_layers < 0 && (is_fixed("recompute") || p.recompute != RecomputeKind::Full || !pipeline)) return false;
  if (p.recompute_layers > 0 &&
      (is_fixed("recompute") || p.recompute != RecomputeKind::Full || p.recompute_layers >= depth / (p.pp * p.virtual_stages)))
    return false;
  if (is_fixed("recompute") && p.recompute != base.recompute) return false;
  if (p.recompute == RecomputeKind::Each && p.recompute_layers != 0) return false;
  if (is_fixed("zero") && p.zero != base.zero) return false;
  if (is_fixed("micro_batch") && p.micro_batch != base.micro_batch) return false;
  if (is_fixed("placement")) return p.order == 0;
  return p.order == 0 || (p.order == 1 && replicas && pipeline) || (p.order == 2 && tensor && replicas) ||
         (p.order == 3 && tensor && pipeline);
}

// Every way to redo some first layers of the stages of each rank.
std::vector<std::vector<int>> all_counts(const Point& point, int depth) {
  const int stages = point.pp * point.virtual_stages, most = (depth + stages - 1) / stages;  // more than a stage has is refused
  std::vector<std::vector<int>> ways = {{}};
  for (int rank = 0; rank < point.pp; ++rank) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& way : ways)
      for (int count = 0; count <= most; ++count) longer.push_back(way), longer.back().push_back(count);
    ways = longer;
  }
  return ways;
}

struct Enumerated {
  double best = 1e300;
  int count = 0, filled = 0;  // that fit; of these, with layers chosen one by one
};

// Every strategy of the space, refined; plain loops over everything.
Enumerated enumerate(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  const int gpus = gpu_count(cluster), depth = std::get<Transformer>(model.shape).layers;
  const Point base{.micro_batch = options.base.batch.micro,
                   .zero = static_cast<std::int8_t>(options.base.zero.stage),
                   .recompute = options.base.recompute.kind};
  Enumerated all;
  const auto visit = [&](const Point& point) {
    if (!holds(point, base, options.fixed, depth, options.base.batch.global)) return;
    Strategy strategy = strategy_at(options.base, point, depth);
    for (const std::vector<int>& way :
         point.recompute_layers < 0 ? all_counts(point, depth) : std::vector<std::vector<int>>(1)) {
      if (point.recompute_layers < 0) strategy.recompute = {.kind = RecomputeKind::Full, .per_stage = way};
      const auto answer = tuned_plan(model, cluster, strategy, {.check = false});
      if (std::holds_alternative<Infeasible>(answer)) continue;
      ++all.count;
      all.filled += std::get<Lowered>(answer).strategy.recompute.kind == RecomputeKind::Each;
      const Estimate estimate = refine(std::get<Lowered>(answer), cluster);
      all.best = std::min(
          all.best, options.objective == Objective::Memory ? static_cast<double>(estimate.peak.value) : estimate.time.value);
    }
  };
  for (int tp = 1; tp <= gpus; tp *= 2)
    for (int pp = 1; tp * pp <= gpus; ++pp)
      for (int v = 1; v <= depth && gpus % (tp * pp) == 0; ++v)
        for (std::int64_t mb = 1; mb <= options.base.batch.global; mb *= 2)
          for (int group = 0; group <= 2; group += 2)
            for (int layers = -1; layers < depth; ++layers)
              for (int bits = 0; bits < 3 * 4 * 8 * 2 * 2 * 4; ++bits) {
                Point point{.tp = tp, .pp = pp, .virtual_stages = v, .dp = gpus / tp / pp, .micro_batch = mb};
                point.zero_group = group, point.recompute_layers = layers;
                point.recompute = static_cast<RecomputeKind>(bits % 3);
                point.zero = static_cast<std::int8_t>(bits / 3 % 4);
                point.overlap_gradients = bits / 12 % 2 == 0, point.overlap_parameters = bits / 24 % 2 == 1;
                point.overlap_p2p = bits / 48 % 2 == 0;
                point.sequence_parallel = bits / 96 % 2 == 1;
                point.schedule = bits / 192 % 2 == 1 ? Schedule::GPipe : v > 1 ? Schedule::Interleaved : Schedule::OneFOneB;
                point.order = static_cast<std::int8_t>(bits / 384);
                visit(point);
                if (point.recompute != RecomputeKind::None || options.objective == Objective::Memory) continue;
                point.recompute = RecomputeKind::Each;  // best: what fills memory
                visit(point);
              }
  return all;
}

}  // namespace

// 24 spaces: a few layers on two or four GPUs, each with other options left to the search; with the large reserve most do not fit.
TEST(Search, EqualsFullEnumerationOnSmallSpaces) {
  const std::vector<std::vector<std::string>> fixed = {
      {"overlap", "placement", "zero_group"}, {"zero", "recompute", "zero_group"}, {"overlap", "micro_batch", "recompute"}};
  int spaces = 0;
  for (const int depth : some_of<int>({2, 3, 4, 6}, 2))
    for (const auto& paths : fixed)
      for (const Objective objective : {Objective::Time, Objective::Memory}) {
        const Cluster cluster = workstation(depth < 4 ? 4 : 2);
        const Model model = layers("gpt2-355m", depth);
        SearchOptions small = options(depth == 3 ? 8 : 4, 256);
        small.base.device_memory.reserve = spaces % 3 == 2 ? 0.85 : 0.06;
        small.base.zero.stage = paths[0] == "zero" ? 1 : 0;
        small.fixed = paths;
        small.objective = objective;
        // Splits by the layers' own times, schedules inside layers and stages with degrees of their own are not among what is
        // enumerated.
        small.balance = small.schedules = small.stages = false;
        const auto answer = search(model, cluster, small);
        ASSERT_TRUE(std::holds_alternative<SearchResult>(answer)) << std::get<Infeasible>(answer).reason;
        const double found = std::get<SearchResult>(answer).ranked.front().score;
        const Enumerated all = enumerate(model, cluster, small);
        EXPECT_DOUBLE_EQ(found, all.best) << depth << " layers, space " << spaces;
        EXPECT_GE(all.count, 8);
        small.prune = false;
        EXPECT_EQ(std::get<SearchResult>(search(model, cluster, small)).ranked.front().score, found);
        small.stages = true;
        EXPECT_LE(std::get<SearchResult>(search(model, cluster, small)).ranked.front().score, found);
        ++spaces;
      }
  EXPECT_GE(spaces, how_many(12, 20));
}

// 32 spaces, some where stages share NICs, some of GPUs that differ: no strategy that fits is refined below its bound, nor below that of its space.
TEST(Search, NoStrategyIsFasterThanItsBound) {
  int spaces = 0, strategies = 0, tight = 0;
  for (const char* name : some_of<const char*>({"workstation-rtx4090", "dgx-a100", "eth25-a100-x2", "dgx-h100-x2"}, 2))
    for (const int depth : {2, 6})
      for (const std::int64_t batch : {8, 32})
        for (const double reserve : {0.06, 0.93}) {
          if (!all_of_it() && (depth != 2 || batch != 8)) continue;
          const Cluster cluster = load_cluster(name);
          const Model model = layers("gpt2-355m", depth);
          SearchOptions all = options(batch, 256);
          all.base.device_memory.reserve = reserve, all.sample = how_many(8, 40), all.refine = 1;
          all.balance = all.schedules = all.stages = false;
          const auto answer = search(model, cluster, all);
          if (std::holds_alternative<Infeasible>(answer)) continue;
          const auto& found = std::get<SearchResult>(answer);
          ++spaces;
          for (const Candidate& each : found.sample) {
            const double exact = each.estimate.time.value * (1 + 1e-6);  // spans are in nanoseconds
            EXPECT_LE(each.screened.bound, exact) << name << " " << depth << " " << batch << " " << to_json(each.strategy);
            EXPECT_LE(found.bound, exact);
            ++strategies, tight += each.screened.bound > 0.9 * each.estimate.time.value;
          }
        }
  EXPECT_GE(spaces, how_many(3, 30));
  EXPECT_GE(strategies, how_many(20, 1000));
  EXPECT_GE(tight, how_many(1, 100));
}

// Half of the GPUs are others, before and behind, larger ones too: what a stage stands on decides how long it takes and what it may hold.
TEST(Search, EqualsFullEnumerationWhereGpusDiffer) {
  const auto with = [](const char* gpu) {
    Cluster cluster = workstation(2);
    cluster.gpus = {load_gpu(gpu)}, cluster.nodes.front().shape.gpu = gpu;
    return cluster;
  };
  const auto both = [](Cluster first, const Cluster& second) {
    first.gpus.push_back(second.gpus.front()), first.nodes.push_back(second.nodes.front());
    return first;
  };
  struct Space {
    Cluster cluster = {};
    double reserve = 0.06;
  };
  const Cluster slow = with("rtx-3090"), fast = with("rtx-4090"), large = with("rtx-a6000");
  const std::vector<Space> spaces = {
      {both(slow, fast)}, {both(fast, slow)}, {both(fast, large), 0.9}, {both(large, fast), 0.45}};
  for (const auto& [cluster, reserve] : some_of(spaces, 2))
    for (const Objective objective : {Objective::Time, Objective::Memory}) {
      if (objective == Objective::Memory && reserve != 0.45) continue;
      const Model model = layers("gpt2-355m", 2);
      SearchOptions small = options(4, 512);
      small.base.device_memory.reserve = reserve, small.fixed = {"overlap", "placement", "zero_group"},
      small.objective = objective;
      small.balance = small.schedules = small.stages = false;
      const auto result = std::get<SearchResult>(search(model, cluster, small));
      const Enumerated all = enumerate(model, cluster, small);
      EXPECT_DOUBLE_EQ(result.ranked.front().score, all.best) << cluster.gpus.front().name << ", " << reserve;
      EXPECT_GE(all.count, 8);
      small.prune = false;
      const auto whole = std::get<SearchResult>(search(model, cluster, small));
      EXPECT_EQ(whole.ranked.front().strategy, result.ranked.front().strategy);
      for (const Candidate& each : whole.ranked) EXPECT_LE(each.screened.bound, each.estimate.time.value * (1 + 1e-6));
    }
}

// So little memory that what wins makes some layers' values again: the winner is that of trying --recompute best at every point, is never
// slower than without it, and pruning does not change it.
TEST(Search, FillsMemoryAsFullEnumerationDoes) {
  int won = 0;
  for (const auto& [depth, reserve] :
       some_of<std::pair<int, double>>({{2, 0.9193}, {4, 0.9193}, {4, 0.8986}, {6, 0.9086}}, 2)) {
    const Model model = layers("gpt2-355m", depth);
    SearchOptions tight = options(8, 512);
    tight.base.device_memory.reserve = reserve, tight.fixed = {"overlap", "placement", "zero_group"};
    tight.balance = tight.schedules = tight.stages = false;
    const auto found = std::get<SearchResult>(search(model, workstation(2), tight));
    const Enumerated all = enumerate(model, workstation(2), tight);
    EXPECT_DOUBLE_EQ(found.ranked.front().score, all.best) << depth << " layers, " << reserve;
    EXPECT_GT(all.filled, 0);
    const Candidate& best = found.ranked.front();
    won += best.point.recompute == RecomputeKind::Each;
    // What it says layer by layer is all there is to say.
    const auto again = tuned_plan(model, workstation(2), best.strategy, {.pack_by_order = false});
    EXPECT_EQ(refine(std::get<Lowered>(again), workstation(2)), best.estimate);
    tight.prune = false;
    const auto whole = std::get<SearchResult>(search(model, workstation(2), tight));
    EXPECT_EQ(whole.ranked.front().strategy, found.ranked.front().strategy);
    tight.best = false;
    const auto without = std::get<SearchResult>(search(model, workstation(2), tight));
    EXPECT_LE(found.ranked.front().score, without.ranked.front().score);
    EXPECT_GT(found.enumerated, without.enumerated);
    EXPECT_GT(whole.evaluated, without.evaluated);
  }
  EXPECT_GE(won, how_many(1, 2));
}

}  // namespace foreshard::search_enumeration_test
