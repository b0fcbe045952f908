// `--policy greedy` and `greedy_sync`: the planner's choice of what stays, as plans obey it.
#include "strategy/tune/region_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "replay/replay.h"
#include "strategy/tune/tune.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::region_choice_test {
namespace {

struct Made {
  RegionRule rule = {};
  Plan plan = {};
  Bytes arena = {};
  double seconds = 0;
};

Strategy strategy_of(const char* policy, Bytes budget) {
  Strategy s{.dp = 1, .batch = {.micro = 2, .global = 4, .seq = 512}, .policy = policy};
  s.offload.budget = budget;
  return s;
}

std::variant<Made, Infeasible> made(const char* policy, Bytes budget = {}) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("workstation-rtx4090");
  auto tuned = tune(model, cluster, strategy_of(policy, budget));
  if (auto* refused = std::get_if<Infeasible>(&tuned)) return *refused;
  const Tuned& closed = std::get<Tuned>(tuned);
  auto answer = lower(model, cluster, closed.strategy, {}, closed.rows);
  if (auto* refused = std::get_if<Infeasible>(&answer)) return *refused;
  Made result{.rule = closed.rows.regions.value_or(RegionRule{}), .plan = std::get<Lowered>(std::move(answer)).plan};
  result.arena = arena_bytes(result.plan.roles.front(), Space::Device);
  result.seconds = makespan_of(result.plan, cluster);
  return result;
}
Made within(const char* policy, Bytes budget = {}) {
  auto answer = made(policy, budget);
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    ADD_FAILURE() << refused->reason;
    return {};
  }
  return std::get<Made>(std::move(answer));
}

int count(const RegionRule& rule, bool (*is)(int region, int by)) {
  int found = 0;
  for (int region = 0; region < static_cast<int>(rule.choices.size()); ++region)
    found += is(region, rule.choices[static_cast<std::size_t>(region)].fetched_by) ? 1 : 0;
  return found;
}
int kept(const RegionRule& rule) {
  return count(rule, [](int, int by) { return by == RegionChoice::kKept; });
}
int prefetched(const RegionRule& rule) {
  return count(rule, [](int region, int by) { return by > region; });
}
int on_demand(const RegionRule& rule) {
  return count(rule, [](int region, int by) { return by == region; });
}

}  // namespace

// With room for everything nothing leaves before its backward. 24 layers of 25 MB, embedding and head: each a region of its own.
TEST(RegionChoices, KeepsWhatFits) {
  const Made all = within("greedy");
  EXPECT_EQ(all.rule.choices.size(), 26u);
  EXPECT_EQ(kept(all.rule), 26);
  EXPECT_EQ(within("greedy_sync").rule.choices, all.rule.choices);
}

// From the budget that keeps everything down to that of fetching all on demand: never above it, not faster with less, and soon prefetched.
TEST(RegionChoices, KeepsToTheBudget) {
  for (const char* policy : {"greedy", "greedy_sync"}) {
    const Made all = within(policy), least = within("gemini_cpu");
    double before = all.seconds;
    int fetched = 0, waited = 0;
    for (const std::int64_t part : {90, 70, 50, 30, 10}) {
      const Bytes budget = {least.arena.value + (all.arena.value - least.arena.value) * part / 100};
      const Made some = within(policy, budget);
      EXPECT_LE(some.arena, budget) << policy << " " << part;
      EXPECT_TRUE(check_plan(some.plan).empty()) << policy << " " << part;
      EXPECT_LT(kept(some.rule), 26) << policy << " " << part;
      EXPECT_GE(some.seconds, before * (1 - 1e-3)) << policy << " " << part;
      before = some.seconds;
      fetched += prefetched(some.rule), waited += on_demand(some.rule);
    }
    EXPECT_EQ(fetched > 0, std::string(policy) == "greedy") << policy;
    if (fetched == 0) {
      EXPECT_GT(waited, 0) << policy;
    }
  }
}

// What hides behind computes is no slower than what is waited for, at the same budget.
TEST(RegionChoices, PrefetchingIsNotSlower) {
  const Made all = within("greedy"), least = within("gemini_cpu");
  const Bytes budget = {(all.arena.value + least.arena.value) / 2};
  EXPECT_LT(within("greedy", budget).seconds, within("greedy_sync", budget).seconds);
}

TEST(RegionChoices, SaysTheSmallestArena) {
  const auto answer = made("greedy", {std::int64_t{1} << 20});
  ASSERT_TRUE(std::holds_alternative<Infeasible>(answer));
  const Infeasible& refused = std::get<Infeasible>(answer);
  EXPECT_NE(refused.reason.find("policy greedy reaches an arena of "), std::string::npos) << refused.reason;
  EXPECT_NE(refused.reason.find(", the budget is 1.00 MiB"), std::string::npos) << refused.reason;
}

// Whatever two regions do: kept, fetched by one of the next three, or by their own backward.
TEST(RegionChoices, EveryPairOfChoicesIsSound) {
  const Model model{.name = "small", .shape = small_transformer(4)};
  const Cluster cluster = load_cluster("dgx-a100");
  for (const int dp : {1, 2}) {
    auto tuned = tune(model, cluster, {.dp = dp, .batch = {.micro = 1, .global = 2 * dp}, .policy = "greedy"});
    ASSERT_TRUE(std::holds_alternative<Tuned>(tuned)) << std::get<Infeasible>(tuned).reason;
    Tuned& closed = std::get<Tuned>(tuned);
    const int layers = static_cast<int>(closed.rows.regions->region_of_layer.size());
    const auto choices_of = [&](int region) {
      std::vector<int> all = {RegionChoice::kKept};
      for (int by = region; by < std::min(layers, region + 4); ++by) all.push_back(by);
      return all;
    };
    for (int first = 0; first < layers; ++first)
      for (int second = first + 1; second < layers; ++second)
        for (const int by_first : choices_of(first))
          for (const int by_second : choices_of(second)) {
            RegionRule rule{.window = 3, .choices = std::vector<RegionChoice>(static_cast<std::size_t>(layers))};
            for (int layer = 0; layer < layers; ++layer) rule.region_of_layer.push_back(layer);
            rule.choices[static_cast<std::size_t>(first)] = {by_first},
            rule.choices[static_cast<std::size_t>(second)] = {by_second};
            closed.rows.regions = rule;
            const auto answer = lower(model, cluster, closed.strategy, {.ignore_memory = true}, closed.rows);
            ASSERT_TRUE(std::holds_alternative<Lowered>(answer));
            const auto defects = check_plan(std::get<Lowered>(answer).plan);
            ASSERT_TRUE(defects.empty()) << first << " by " << by_first << ", " << second << " by " << by_second << ": "
                                         << defects.front().what;
          }
  }
}

}  // namespace foreshard::region_choice_test
