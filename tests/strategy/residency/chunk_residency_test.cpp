#include "strategy/residency/chunk_residency.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

#include "strategy/residency/chunks.h"
#include "tests/strategy/residency/support_llama.h"

namespace foreshard::chunk_residency_test {

namespace {

// The fewest transfers over all choices of what leaves before each use, whether or not it has to: `budget` in chunks.
std::int64_t fewest_transfers(int chunks, const std::vector<UnitUse>& uses, const ElementCurve& budget) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int32_t>::max();
  const std::size_t sets = std::size_t{1} << chunks;
  std::vector<std::int64_t> fewest(sets, kNever);  // [set on the device after the use]
  fewest[0] = 0;
  for (std::size_t moment = 0; moment < uses.size(); ++moment) {
    std::vector<std::int64_t> next(sets, kNever);
    const std::size_t used = std::size_t{1} << uses[moment].unit;
    for (std::size_t before = 0; before < sets; ++before)
      for (std::size_t kept = 0; kept < sets; ++kept) {
        if (fewest[before] == kNever || (kept & ~before) != 0) continue;
        if (std::popcount(kept | used) > budget[moment]) continue;
        const std::int64_t transfers = fewest[before] + ((kept & used) == 0 ? 1 : 0);
        next[kept | used] = std::min(next[kept | used], transfers);
      }
    fewest = next;
  }
  return *std::min_element(fewest.begin(), fewest.end());
}

void expect_inside(const std::vector<ParameterUnit>& chunks, const std::vector<UnitUse>& uses, const Residency& residency,
                   const ElementCurve& budget) {
  EXPECT_EQ(residency_fault(chunks, uses, residency), "");
  const ElementCurve curve = resident_elements(chunks, uses, residency);
  for (std::size_t moment = 0; moment < curve.size(); ++moment) EXPECT_LE(curve[moment], budget[moment]) << moment;
}

}  // namespace

// ---- chunks ----

TEST(Chunks, AModuleThatDoesNotFitOpensTheNext) {
  const ChunkLayout layout = lay_chunks({{"a", 6}, {"b", 3}, {"c", 2}, {"d", 25}, {"e", 1}, {"f", 9}}, 10);
  EXPECT_EQ(layout.chunk_of, (std::vector<int>{0, 0, 1, 2, 3, 3}));
  EXPECT_EQ(layout.chunks, (std::vector<ParameterUnit>{{"chunk 0", 10}, {"chunk 1", 10}, {"chunk 2", 25}, {"chunk 3", 10}}));
  EXPECT_EQ(layout.padding, 1 + 8 + 0 + 0);
  EXPECT_EQ(chunk_uses(layout, step_order(6)), (std::vector<UnitUse>{{0, Phase::Forward},
                                                                     {1, Phase::Forward},
                                                                     {2, Phase::Forward},
                                                                     {3, Phase::Forward},
                                                                     {3, Phase::Backward},
                                                                     {2, Phase::Backward},
                                                                     {1, Phase::Backward},
                                                                     {0, Phase::Backward}}));
}

// 6, 5, 4, 3: chunks of 9 hold 6 | 5 4 | 3 and leave 9; of 10: 6 | 5 4 | 3, 12; of 11: 6 5 | 4 3, 4; of 12: 6 5 | 4 3, 6.
TEST(Chunks, LeastPaddingOfSmallSizes) {
  EXPECT_EQ(padding_of({6, 5, 4, 3}, 9), 9);
  EXPECT_EQ(padding_of({6, 5, 4, 3}, 10), 12);
  EXPECT_EQ(padding_of({6, 5, 4, 3}, 11), 4);
  EXPECT_EQ(least_padding_chunk({{"a", 6}, {"b", 5}, {"c", 4}, {"d", 3}}, {.least = 8, .range = 4, .step = 1}), 11);
  // From a multiple of the step on; what is larger than mean + 3 sigma (one of 100 among 20 of 5) is left out.
  EXPECT_EQ(least_padding_chunk({{"a", 6}, {"b", 5}, {"c", 4}, {"d", 3}}, {.least = 8, .range = 4, .step = 5}), 10);
  std::vector<ParameterUnit> modules = equal_blocks(20, 5);
  modules.push_back({"large", 100});
  EXPECT_EQ(least_padding_chunk(modules, {.least = 4, .range = 6, .step = 1}), 5);
  EXPECT_EQ(least_padding_chunk({{"a", 3}, {"b", 4}}, {.least = 8}), 7);
}

// Every size that Gemini would try on Llama-2-7B, in steps of the hidden size, against the padding that lay_chunks makes.
TEST(Chunks, LeastPaddingOfLlama) {
  const std::vector<ParameterUnit> modules = llama_modules();
  const std::int64_t chunk = least_padding_chunk(modules, {.step = kLlamaHidden});
  std::vector<ParameterUnit> searched;  // without the embedding and the head: more than mean + 3 sigma
  for (const ParameterUnit& module : modules)
    if (module.elements != kLlamaVocabulary * kLlamaHidden) searched.push_back(module);
  const std::int64_t least = lay_chunks(searched, chunk).padding, first = kLlamaFeedForward * kLlamaHidden;
  EXPECT_GE(chunk, first);
  for (std::int64_t size = first; size <= first + (std::int64_t{32} << 20); size += kLlamaHidden) {
    const std::int64_t padding = lay_chunks(searched, size).padding;
    EXPECT_GE(padding, least) << size;
    if (size < chunk) {
      EXPECT_GT(padding, least) << size;
    }
  }
}

// ---- a fixed share ----

TEST(ChunkResidency, NothingKeptIsOneChunkAndTwoTransfers) {
  const std::vector<ParameterUnit> chunks = equal_blocks(5, 7);
  const Residency residency = fixed_share_residency(chunks, step_order(5), 0);
  EXPECT_EQ(residency_fault(chunks, step_order(5), residency), "");
  EXPECT_EQ(peak_elements(chunks, step_order(5), residency), 7);
  EXPECT_EQ(brought_elements(chunks, residency), (2 * 5 - 1) * 7);  // the last one is used twice in a row
}

// Two of four stay idle: 0 goes when 3 comes, and comes again last. With all kept nothing moves twice.
TEST(ChunkResidency, AFixedShareStaysIdle) {
  const std::vector<ParameterUnit> chunks = equal_blocks(4, 1);
  const std::vector<UnitUse> uses = step_order(4);
  const Residency residency = fixed_share_residency(chunks, uses, 2);
  EXPECT_EQ(residency_fault(chunks, uses, residency), "");
  EXPECT_EQ(residency.stays, (std::vector<Stay>{{0, 0, 0, 2}, {1, 1, 1, 6}, {2, 2, 2, 5}, {3, 3, 3, 4}, {0, 7, 7, 7}}));
  EXPECT_EQ(peak_elements(chunks, uses, residency), 3);
  EXPECT_EQ(brought_elements(chunks, fixed_share_residency(chunks, uses, 4)), 4);
}

// ---- a budget ----

TEST(ChunkResidency, FarthestNextUseLeavesFirst) {
  // Budget of two: before c the farther of a (moment 5) and b (4) goes.
  const std::vector<ParameterUnit> chunks = equal_blocks(3, 1);
  const std::vector<UnitUse> uses = step_order(3);
  const auto residency = std::get<Residency>(budget_residency(chunks, uses, {.budget = ElementCurve(6, 2)}));
  EXPECT_EQ(residency.stays, (std::vector<Stay>{{0, 0, 0, 1}, {1, 1, 1, 4}, {2, 2, 2, 3}, {0, 5, 5, 5}}));
}

TEST(ChunkResidency, BeladyMakesTheFewestTransfers) {
  std::mt19937 random(11);
  const auto number = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  std::int64_t in_order = 0, farthest = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const int count = number(2, 5), moments = number(4, 12), largest = number(1, count);
    const std::vector<ParameterUnit> chunks = equal_blocks(count, 3);
    std::vector<UnitUse> uses;
    BudgetRule rule;
    for (int moment = 0; moment < moments; ++moment) {
      uses.push_back({number(0, count - 1), Phase::Forward});
      rule.budget.push_back(number(std::max(1, largest - 2), largest));
    }
    const std::int64_t fewest = fewest_transfers(count, uses, rule.budget);
    for (std::int64_t& elements : rule.budget) elements = 3 * elements + trial % 3;  // what is left over holds no chunk
    for (const int prefetch : {0, 1, 3}) {  // a prefetch moves transfers and makes none
      rule.prefetch = prefetch;
      const auto residency = std::get<Residency>(budget_residency(chunks, uses, rule));
      expect_inside(chunks, uses, residency, rule.budget);
      EXPECT_EQ(brought_elements(chunks, residency), 3 * fewest) << trial;
    }
    farthest += 3 * fewest;
    rule.evict = Evict::InOrder;
    const auto warmup = std::get<Residency>(budget_residency(chunks, uses, rule));
    expect_inside(chunks, uses, warmup, rule.budget);
    in_order += brought_elements(chunks, warmup);
  }
  EXPECT_GT(in_order, farthest);
}

TEST(ChunkResidency, APrefetchNeedsRoomUntilItsUse) {
  const std::vector<ParameterUnit> chunks = equal_blocks(3, 1);
  const std::vector<UnitUse> uses = {{0, Phase::Forward}, {1, Phase::Forward}, {0, Phase::Forward}, {2, Phase::Forward}};
  const auto stay_of_c = [&](ElementCurve budget, int prefetch) {
    const auto residency =
        std::get<Residency>(budget_residency(chunks, uses, {.budget = std::move(budget), .prefetch = prefetch}));
    EXPECT_EQ(residency_fault(chunks, uses, residency), "");
    return residency.stays.back();
  };
  EXPECT_EQ(stay_of_c({3, 3, 3, 3}, 2), (Stay{2, 0, 3, 3}));
  EXPECT_EQ(stay_of_c({3, 3, 3, 3}, 1), (Stay{2, 2, 3, 3}));  // the next one after moment 1 is a
  EXPECT_EQ(stay_of_c({3, 3, 3, 3}, 0), (Stay{2, 3, 3, 3}));
  EXPECT_EQ(stay_of_c({3, 2, 3, 3}, 2), (Stay{2, 2, 3, 3}));  // a and b fill moment 1
}

TEST(ChunkResidency, WhatTheDeviceUpdatedIsThereAtTheStart) {
  const std::vector<ParameterUnit> chunks = equal_blocks(3, 4);
  const std::vector<UnitUse> uses = step_order(3);
  const auto residency =
      std::get<Residency>(budget_residency(chunks, uses, {.budget = ElementCurve(6, 12), .there_at_start = 2}));
  expect_inside(chunks, uses, residency, ElementCurve(6, 12));
  EXPECT_EQ(residency.stays, (std::vector<Stay>{{0, -1, 0, 5}, {1, -1, 1, 4}, {2, 2, 2, 3}}));
  EXPECT_EQ(brought_elements(chunks, residency), 4);
  // Room for one only from moment 0 on: b leaves before it is used, and comes on demand.
  const ElementCurve narrow = {8, 4, 4, 4, 4, 4};
  const auto late = std::get<Residency>(budget_residency(chunks,
                                                         {{0, Phase::Forward},
                                                          {2, Phase::Forward},
                                                          {1, Phase::Forward},
                                                          {0, Phase::Backward},
                                                          {1, Phase::Backward},
                                                          {2, Phase::Backward}},
                                                         {.budget = narrow, .there_at_start = 2}));
  EXPECT_EQ(late.stays[0], (Stay{0, -1, 0, 0}));
  EXPECT_EQ(late.stays[1], (Stay{2, 1, 1, 1}));
  EXPECT_EQ(late.stays[2], (Stay{1, 2, 2, 2}));
}

TEST(ChunkResidency, ABudgetBelowOneChunkIsInfeasible) {
  const auto result = budget_residency({{"a", 1200}}, step_order(1), {.budget = {1200, 1100}});
  EXPECT_EQ(std::get<Infeasible>(result).reason, "a has 1,200 elements, the budget is 1,100");
  const auto start = budget_residency(equal_blocks(2, 10), step_order(2), {.budget = ElementCurve(4, 15), .there_at_start = 2});
  EXPECT_EQ(std::get<Infeasible>(start).reason, "what is on the device at the start has 20 elements, the budget is 15");
}

// 0.9 * 1000 = 900 less the larger of this moment and the next: 700, 500, 500, 850 bytes; less than nothing is nothing.
TEST(ChunkResidency, BudgetsFollowTheTracedStep) {
  EXPECT_EQ(traced_budget({1000}, 0.9, {{100}, {200}, {400}, {50}}), (ElementCurve{350, 250, 250, 425}));
  EXPECT_EQ(traced_budget({1000}, 0.8, {{100}, {900}}, 4), (ElementCurve{0, 0}));
  EXPECT_EQ(warmup_budget({1000}, 0.2, 3), (ElementCurve{100, 100, 100}));
}

// PatrickStar on 32e9 B: (25.6e9 - 5.6e9 - 8e9) / (12 * 1e8) * 0.8 = 8 chunks of 1e8 elements.
TEST(ChunkResidency, PatrickStarKeepsOptimizerChunksInTheMargin) {
  EXPECT_EQ(optimizer_chunks_on_device({32'000'000'000}, {5'600'000'000}, {8'000'000'000}, 100'000'000), 8);
  EXPECT_EQ(optimizer_chunks_on_device({8'000'000'000}, {5'600'000'000}, {8'000'000'000}, 100'000'000), 0);
}

}  // namespace foreshard::chunk_residency_test
