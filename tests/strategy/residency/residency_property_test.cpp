// OperatorTraits of every planner over generated units, orders and rules.
#include <gtest/gtest.h>

#include <random>

#include "strategy/residency/block_residency.h"
#include "strategy/residency/chunk_residency.h"
#include "strategy/residency/module_residency.h"

namespace foreshard::residency_property_test {

namespace {

class Steps {
 public:
  int number(int least, int most) { return least + static_cast<int>(random_() % static_cast<unsigned>(most - least + 1)); }
  bool coin() { return number(0, 1) == 1; }

  std::vector<ParameterUnit> units() {
    std::vector<ParameterUnit> units(static_cast<std::size_t>(number(1, 8)));
    for (std::size_t i = 0; i < units.size(); ++i) units[i] = {std::to_string(i), number(1, 20)};
    return units;
  }
  // One or two micro-batches; units used more than once in a forward, or with a recomputed range.
  std::vector<UnitUse> uses(int units) {
    std::vector<UnitUse> uses;
    for (int microbatch = number(1, 2); microbatch > 0; --microbatch) {
      std::vector<UnitUse> one =
          step_order(units, coin() ? std::vector<UnitRange>{{units / 2, units - 1}} : std::vector<UnitRange>{});
      for (int again = number(0, 2); again > 0; --again) {
        const int unit = number(0, units - 1);
        one.insert(one.begin() + number(0, units), {unit, Phase::Forward});
        one.insert(one.end() - number(0, units), {unit, Phase::Backward});
      }
      uses.insert(uses.end(), one.begin(), one.end());
    }
    return uses;
  }

 private:
  std::mt19937 random_{41};
};

constexpr int kTrials = 1000;

}  // namespace

TEST(ResidencyProperty, ModulesAreThereWhenTheyAreUsed) {
  Steps steps;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<ParameterUnit> units = steps.units();
    const std::vector<UnitUse> uses = steps.uses(static_cast<int>(units.size()));
    ModuleRule rule = {steps.number(0, 10), steps.number(0, 40), steps.number(0, 60), steps.number(0, 90),
                       steps.number(0, 120)};
    const Residency residency = module_residency(units, uses, rule);
    EXPECT_EQ(residency_fault(units, uses, residency), "") << trial;
    // Without a prefetch, a longer reuse distance only spares gathers.
    rule.prefetch = 0;
    const std::int64_t brought = brought_elements(units, module_residency(units, uses, rule));
    rule.reuse_distance *= 2;
    EXPECT_LE(brought_elements(units, module_residency(units, uses, rule)), brought) << trial;
  }
}

TEST(ResidencyProperty, BlocksAreThereWhenTheyAreUsed) {
  Steps steps;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<ParameterUnit> units = steps.units();
    const std::vector<UnitUse> uses = steps.uses(static_cast<int>(units.size()));
    BlockRule rule = {.ahead_forward = steps.number(0, 3),
                      .ahead_backward = steps.number(0, 3),
                      .staging_in_forward = steps.coin(),
                      .gradient = static_cast<FullGradient>(steps.number(0, 2)),
                      .reduction_in_flight = steps.coin()};
    const Residency residency = block_residency(units, uses, rule);
    EXPECT_EQ(residency_fault(units, uses, residency), "") << trial;
    rule.keep_after_forward = true;
    const Residency kept = block_residency(units, uses, rule);
    EXPECT_EQ(residency_fault(units, uses, kept), "") << trial;
    EXPECT_LE(brought_elements(units, kept), brought_elements(units, residency)) << trial;
    EXPECT_GE(peak_elements(units, uses, kept), peak_elements(units, uses, residency)) << trial;
    // How far ahead units are gathered changes no gather.
    rule.keep_after_forward = false, rule.ahead_forward = 0, rule.ahead_backward = 0;
    EXPECT_EQ(brought_elements(units, block_residency(units, uses, rule)), brought_elements(units, residency)) << trial;
  }
}

TEST(ResidencyProperty, ChunksAreThereWhenTheyAreUsed) {
  Steps steps;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<ParameterUnit> units = steps.units();
    const std::vector<UnitUse> uses = steps.uses(static_cast<int>(units.size()));
    const std::int64_t kept = steps.number(0, 100);
    const Residency share = fixed_share_residency(units, uses, kept);
    EXPECT_EQ(residency_fault(units, uses, share), "") << trial;
    EXPECT_LE(peak_elements(units, uses, share), kept + 20) << trial;
    BudgetRule rule = {.evict = steps.coin() ? Evict::FarthestNextUse : Evict::InOrder, .prefetch = steps.number(0, 3)};
    for (std::size_t i = 0; i < uses.size(); ++i) rule.budget.push_back(steps.number(20, 80));
    const Residency budgeted = std::get<Residency>(budget_residency(units, uses, rule));
    EXPECT_EQ(residency_fault(units, uses, budgeted), "") << trial;
    const ElementCurve curve = resident_elements(units, uses, budgeted);
    for (std::size_t i = 0; i < uses.size(); ++i) EXPECT_LE(curve[i], rule.budget[i]) << trial;
  }
}

// Of equal chunks, under the rule of the farthest next use.
TEST(ResidencyProperty, MoreRoomIsNeverMoreTransfers) {
  Steps steps;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<ParameterUnit> units(static_cast<std::size_t>(steps.number(1, 8)), {"chunk", 10});
    const std::vector<UnitUse> uses = steps.uses(static_cast<int>(units.size()));
    BudgetRule rule;
    for (std::size_t i = 0; i < uses.size(); ++i) rule.budget.push_back(steps.number(10, 60));
    const std::int64_t brought = brought_elements(units, std::get<Residency>(budget_residency(units, uses, rule)));
    for (std::int64_t& budget : rule.budget) budget += steps.number(0, 20);
    EXPECT_LE(brought_elements(units, std::get<Residency>(budget_residency(units, uses, rule))), brought) << trial;
  }
}

}  // namespace foreshard::residency_property_test
