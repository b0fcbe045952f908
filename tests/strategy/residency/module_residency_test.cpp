// The golden rule simulation of DeepSpeed's ZeRO stage 3 on Llama-2-7B: every number was computed once by an independent program of the
// rule's pseudocode; 1,126,170,624 el = 2.10 GiB of 16-bit numbers = 5.56 blocks of 202,383,360.
#include "strategy/residency/module_residency.h"

#include <gtest/gtest.h>

#include "tests/strategy/residency/support_llama.h"

namespace foreshard::module_residency_test {

namespace {

constexpr std::int64_t kEndless = 100'000'000'000;

struct Taken {
  std::int64_t peak = 0, brought = 0;
  bool operator==(const Taken&) const = default;
};

Taken taken(const ModuleRule& rule, const std::vector<UnitRange>& recomputed = {}) {
  const std::vector<ParameterUnit> modules = llama_modules();
  const std::vector<UnitUse> uses = step_order(static_cast<int>(modules.size()), recomputed);
  const Residency residency = module_residency(modules, uses, rule);
  EXPECT_EQ(residency_fault(modules, uses, residency), "");
  return {peak_elements(modules, uses, residency), brought_elements(modules, residency)};
}

}  // namespace

TEST(ModuleResidency, TheModelHasItsParameters) {
  std::int64_t total = 0, block = 0;
  const std::vector<ParameterUnit> modules = llama_modules();
  for (const ParameterUnit& module : modules) total += module.elements;
  for (int i = llama_layers()[0].first; i <= llama_layers()[0].last; ++i)
    block += modules[static_cast<std::size_t>(i)].elements;
  EXPECT_EQ(total, kLlamaParameters);
  EXPECT_EQ(block, kLlamaBlock);
}

TEST(ModuleResidency, GoldenValuesOfDeepSpeed) {
  const Taken defaults = {1'126'170'624, 12'490'637'312};  // 2.10 GiB, gathered 1.854 times
  EXPECT_EQ(taken({}), defaults);
  EXPECT_EQ(taken({}, llama_layers()), (Taken{1'126'170'624, 12'535'726'080}));  // 1.860 times
  // The "auto" values of Hugging Face, and the documentation's prefetch.
  EXPECT_EQ(taken({.persist_threshold = 10 * kLlamaHidden, .prefetch = kLlamaHidden * kLlamaHidden * 9 / 10}), defaults);
  EXPECT_EQ(taken({.prefetch = 500'000'000}), defaults);
  EXPECT_EQ(taken({.reuse_distance = 0}), defaults);
  EXPECT_EQ(taken({.live_cap = 0}), (Taken{502'267'904, 12'974'030'848}));                       // 0.94 GiB, 1.925 times
  EXPECT_EQ(taken({.prefetch = 0, .reuse_distance = 0}), (Taken{131'072'000, 13'476'298'752}));  // the embedding; 2.000
  EXPECT_EQ(taken({.live_cap = kEndless, .reuse_distance = kEndless}),
            (Taken{6'738'149'376, 6'738'149'376}));  // 12.55 GiB, once
  for (const std::int64_t prefetch : {1'000'000, 1'000'000'000})
    for (const std::int64_t reuse : {0, 100'000'000, 1'000'000'000})
      EXPECT_EQ(taken({.prefetch = prefetch, .reuse_distance = reuse}), defaults) << prefetch << " " << reuse;
}

// Without persistent modules: one gather of each parameter, or two.
TEST(ModuleResidency, KeepingGathersOnceAndReleasingGathersTwice) {
  EXPECT_EQ(taken({.persist_threshold = 0, .live_cap = kEndless, .reuse_distance = kEndless}),
            (Taken{kLlamaParameters, kLlamaParameters}));
  EXPECT_EQ(taken({.persist_threshold = 0, .prefetch = 0, .reuse_distance = 0}), (Taken{131'072'000, 2 * kLlamaParameters}));
}

TEST(ModuleResidency, PersistentModulesStayUpToTheirCap) {
  const std::vector<ParameterUnit> modules = {{"a", 5}, {"b", 5}, {"c", 6}, {"d", 4}};
  EXPECT_EQ(module_residency(modules, step_order(4), {.persist_threshold = 5}).persistent, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(module_residency(modules, step_order(4), {.persist_threshold = 5, .persist_cap = 9}).persistent,
            (std::vector<int>{0, 3}));
}

// The release rule does not read the live cap: with nothing prefetched under either, all stays are the same.
TEST(ModuleResidency, TheLiveCapForcesNoRelease) {
  const std::vector<ParameterUnit> modules = equal_blocks(6, 10);
  const auto residency = [&](std::int64_t live_cap) {
    return module_residency(modules, step_order(6),
                            {.persist_threshold = 0, .prefetch = 0, .live_cap = live_cap, .reuse_distance = 25});
  };
  EXPECT_EQ(residency(0), residency(1000));
  // Block 4 is used again after 5 and 5: 20 elements later. Block 3 after 40.
  EXPECT_EQ(residency(0).stays[3], (Stay{3, 3, 3, 3}));
  EXPECT_EQ(residency(0).stays[4], (Stay{4, 4, 4, 7}));
}

// a b c of 10 el, 15 el prefetched at a moment: b and c beside a; c's and b's backwards were passed, so they stay for them.
TEST(ModuleResidency, WhatThePrefetchPassedIsKept) {
  const std::vector<ParameterUnit> modules = equal_blocks(3, 10);
  const Residency residency =
      module_residency(modules, step_order(3), {.persist_threshold = 0, .prefetch = 15, .live_cap = 1000, .reuse_distance = 0});
  // Moment 1: every use to come but the last is of what is there; a's backward gathers a again.
  EXPECT_EQ(residency.stays, (std::vector<Stay>{{0, 0, 0, 0}, {1, 0, 1, 4}, {2, 0, 2, 3}, {0, 1, 5, 5}}));
}

}  // namespace foreshard::module_residency_test
