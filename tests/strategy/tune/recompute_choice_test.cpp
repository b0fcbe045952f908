// `--recompute best` against every assignment of its forms to the layers, and beside the other forms of recomputation.
#include <algorithm>

#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "strategy/estimate/estimate.h"
#include "strategy/tune/tune.h"
#include "tests/core/support_models.h"
#include "tests/how_many.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::recompute_choice_test {
namespace {

std::vector<RankTrades> trades_of(const Model& model, const Cluster& cluster, const Strategy& strategy) {
  return std::get<Tuned>(tune(model, cluster, strategy, {.ignore_memory = true})).trades;
}

Model small(int layers) { return gpt(layers, 1024, 16, 1000, 1024); }

// On GPUs with `bytes` for the arena.
Strategy within(Strategy s, double bytes) {
  s.device_memory.framework = Bytes{0};
  s.device_memory.reserve = 1 - bytes / static_cast<double>(gpu_of(load_cluster("dgx-a100"), "a100-80").memory.value);
  s.recompute = parse_recompute("best", "test");
  return s;
}

double arena(const Plan& plan) { return static_cast<double>(arena_bytes(plan.roles[0], Space::Device).value); }

std::optional<double> seconds(const Model& model, const Cluster& cluster, const Strategy& s) {
  const auto answer = tuned_plan(model, cluster, s, {.check = false});
  if (std::holds_alternative<Infeasible>(answer)) return {};
  return refine(std::get<Lowered>(answer), cluster).time.value;
}

// The fastest of all assignments of `forms` that fits.
double brute_force(const Model& model, const Cluster& cluster, Strategy s, const std::vector<LayerRecompute>& forms,
                   int layers) {
  double best = 1e300;
  std::vector<std::size_t> digits(static_cast<std::size_t>(layers), 0);
  for (bool more = true; more;) {
    s.recompute = {.kind = RecomputeKind::Each};
    for (const std::size_t digit : digits) s.recompute.each.push_back(forms[digit]);
    if (std::is_sorted(digits.begin(), digits.end()))  // layers are equal: their order counts only for what shares bytes
      if (const auto time = seconds(model, cluster, s)) best = std::min(best, *time);
    std::size_t at = 0;
    while (at < digits.size() && ++digits[at] == forms.size()) digits[at++] = 0;
    more = at < digits.size();
  }
  return best;
}

}  // namespace

TEST(RecomputeChoice, IsAsFastAsTheBestOfAllAssignments) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Model model = small(4);
  int compared = 0;
  for (const AttentionKernel attention : {AttentionKernel::Flash, AttentionKernel::Unfused}) {
    const Strategy base{.dp = 1, .batch = {.micro = 8, .global = 16, .seq = 1024}, .attention = attention, .dropout = 0.1};
    Strategy none = base, full = base;
    full.recompute = {.kind = RecomputeKind::Full};
    const double most = arena(lowered(model, cluster, none).plan), least = arena(lowered(model, cluster, full).plan);
    ASSERT_LT(least, most);
    for (int step = 0; step <= 6; step += how_many(3, 1)) {
      const Strategy s = within(base, least + (most - least) * step / 6.0 + 1e6);
      const Lowered found = lowered(model, cluster, s);
      const auto time = seconds(model, cluster, s);
      ASSERT_TRUE(time) << step;
      const double best = brute_force(model, cluster, s, trades_of(model, cluster, s)[0].forms, 4);
      EXPECT_LE(*time, best * 1.0005) << step << " " << to_text(found.strategy.recompute);
      ++compared;
    }
  }
  EXPECT_EQ(compared, how_many(6, 14));
}

// Never slower than the fewest layers that are redone whole, and faster where there is something between all and nothing.
TEST(RecomputeChoice, BeatsTheFewestWholeLayers) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Model model = small(8);
  const Strategy base{.dp = 1, .pp = 2, .batch = {.micro = 8, .global = 64, .seq = 1024}, .dropout = 0.1};
  const double most = arena(lowered(model, cluster, base).plan);
  int faster = 0;
  for (const double share : {0.9, 0.8, 0.7, 0.6}) {
    Strategy s = within(base, most * share);
    const auto best = seconds(model, cluster, s);
    s.recompute = parse_recompute("auto", "test");
    const auto whole = seconds(model, cluster, s);
    ASSERT_TRUE(best && whole) << share;
    EXPECT_LE(*best, *whole * (1 + 1e-9));
    faster += *best < *whole * 0.99;
  }
  EXPECT_GE(faster, 3);
}

// Blocks of ResNet-50 differ tenfold in bytes, and what is made again of the largest is scratch beside all the rest.
TEST(RecomputeChoice, IsNoSlowerThanWholeLayersWhereLayersDiffer) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Model model = load_model("resnet-50");
  const Strategy base{.dp = 1, .batch = {.micro = 256, .global = 512}};
  const double most = arena(lowered(model, cluster, base).plan);
  int compared = 0, faster = 0;
  for (const double share : {0.97, 0.95, 0.93, 0.9, 0.85, 0.8, 0.75}) {
    Strategy s = within(base, most * share);
    const auto best = seconds(model, cluster, s);
    s.recompute = parse_recompute("auto", "test");
    const auto whole = seconds(model, cluster, s);
    if (!whole) continue;
    ASSERT_TRUE(best) << share;
    EXPECT_LE(*best, *whole * (1 + 1e-4)) << share;
    faster += *best < *whole * 0.99;
    ++compared;
  }
  EXPECT_GE(compared, 3);
  EXPECT_GE(faster, 2);
}

// The front begins with keeping all; every trade is slower and smaller than the one before; the chosen one is on it.
TEST(RecomputeChoice, TheFrontIsOne) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Strategy base{.dp = 1, .pp = 2, .batch = {.micro = 8, .global = 64, .seq = 1024}};
  const double most = arena(lowered(small(8), cluster, base).plan);
  const std::vector<RankTrades> found = trades_of(small(8), cluster, within(base, most * 0.8));
  ASSERT_EQ(found.size(), 2u);
  for (const RankTrades& rank : found) {
    ASSERT_GT(rank.front.size(), 3u);
    EXPECT_EQ(rank.front.front().seconds.value, 0);
    EXPECT_EQ(rank.front.front().layers[0], 4) << "none of four";
    for (std::size_t i = 1; i < rank.front.size(); ++i) {
      EXPECT_GT(rank.front[i].seconds, rank.front[i - 1].seconds);
      EXPECT_LT(rank.front[i].kept, rank.front[i - 1].kept);
    }
    const bool on = std::ranges::any_of(rank.front, [&](const LayerTrade& trade) {
      return trade.seconds == rank.chosen.seconds && trade.kept == rank.chosen.kept;
    });
    EXPECT_TRUE(on);
  }
  EXPECT_TRUE(trades_of(small(8), cluster, base).empty());
}

TEST(RecomputeChoice, RefusalsSayWhy) {
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy s{.dp = 1, .batch = {.global = 2, .seq = 64}, .recompute = parse_recompute("each:3xfull", "test")};
  EXPECT_EQ(refused(small(4), cluster, s).reason, "recompute each:3xfull names 3 layers, the model has 4");
  s.recompute = parse_recompute("best", "test");
  s.framework = "megatron";
  EXPECT_EQ(refused(small(4), cluster, s).reason, "framework megatron recomputes its layers alike, not best");
}

}  // namespace foreshard::recompute_choice_test
