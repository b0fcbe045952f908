// Device memory outside the arena: stated, measured or estimated from the communicators.
#include "strategy/cost/framework_memory.h"

#include <gtest/gtest.h>

#include "core/cluster/cluster.h"
#include "core/profile/machine_profile.h"

namespace foreshard::framework_memory_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20, kConnection = 9'633'792;

Strategy degrees(int dp, int tp, int cp, int pp) { return {.dp = dp, .tp = tp, .cp = cp, .pp = pp}; }

}  // namespace

// Context 512 MiB and workspace 32 MiB; 8 channels for each communicator; 2 neighbours with 2 channels each in a pipeline.
TEST(FrameworkMemory, CountsCommunicators) {
  const std::int64_t context = 544 * kMiB;
  EXPECT_EQ(framework_memory(degrees(1, 1, 1, 1)), Bytes{context});
  EXPECT_EQ(framework_memory(degrees(2, 1, 1, 1)), Bytes{context + 8 * kConnection});
  EXPECT_EQ(framework_memory(degrees(1, 1, 1, 8)), Bytes{context + 4 * kConnection});
  EXPECT_EQ(framework_memory(degrees(2, 4, 2, 2)), Bytes{context + (3 * 8 + 4) * kConnection});
}

// Stages with degrees of their own: the widest tensor group counts, and one stage with replicas is enough.
TEST(FrameworkMemory, StagesOfTheirOwnDegrees) {
  Strategy strategy = degrees(1, 1, 1, 2);
  strategy.stages = {{.layers = 3, .dp = 2, .tp = 1}, {.layers = 3, .dp = 1, .tp = 2}};
  EXPECT_EQ(framework_memory(strategy), Bytes{544 * kMiB + (2 * 8 + 4) * kConnection});
}

TEST(FrameworkMemory, WhatIsStatedReplacesTheEstimate) {
  Strategy strategy = degrees(2, 2, 1, 2);
  strategy.device_memory.framework = Bytes{12345};
  EXPECT_EQ(framework_memory(strategy), Bytes{12345});
  EXPECT_EQ(framework_memory(strategy, {.context = Bytes{kMiB}}, "hopper"), Bytes{12345});
  // A framework's own context is in place of context and workspace, not of the communicators.
  EXPECT_EQ(framework_memory(degrees(2, 1, 1, 1), {.context = Bytes{kMiB}}, "hopper"), Bytes{kMiB + 8 * kConnection});
}

TEST(FrameworkMemory, AMeasurementIsOfTheGpusOfTheCluster) {
  const Cluster cluster{.nodes = {{.shape = {.gpu = "h100-80"}}}};
  MachineProfile profile{.device = "h100-80", .outside_memory = {700 * kMiB}};
  EXPECT_EQ(measured_outside(&profile, cluster), Bytes{732 * kMiB});
  EXPECT_FALSE(measured_outside(nullptr, cluster));
  profile.device = "a100-80";
  EXPECT_FALSE(measured_outside(&profile, cluster));
  profile.device = "h100-80", profile.outside_memory = {};  // not measured
  EXPECT_FALSE(measured_outside(&profile, cluster));
}

// dp 4 x pp 2: the world and dp have more than two ranks, pp, the model's group and that of tied embeddings two; Hopper has a third more
// channels than Ampere.
TEST(FrameworkMemory, CommunicatorsOfTheFrameworksGroups) {
  const MemoryTraits traits = {.communicators = {"world", "dp", "tp", "pp", "model", "tied"}, .context = Bytes{kMiB}};
  const std::int64_t ampere = std::int64_t{2} * 688'000'000 + std::int64_t{3} * 544'000'000;
  EXPECT_EQ(framework_memory(degrees(4, 1, 1, 2), traits, "ampere"), Bytes{kMiB + ampere});
  EXPECT_EQ(framework_memory(degrees(4, 1, 1, 2), traits, "hopper"), Bytes{kMiB + ampere * 4 / 3});
  EXPECT_EQ(framework_memory(degrees(1, 1, 1, 1), traits, "hopper"), Bytes{kMiB});
}

}  // namespace foreshard::framework_memory_test
