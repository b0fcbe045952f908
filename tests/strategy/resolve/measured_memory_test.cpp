// What calibrate measured outside the arena, in a strategy.
#include "strategy/resolve/measured_memory.h"

#include <gtest/gtest.h>

#include "core/cluster/cluster.h"
#include "core/profile/machine_profile.h"
#include "strategy/resolve/resolve.h"

namespace foreshard::measured_memory_test {

constexpr std::int64_t kMiB = 1 << 20;

// 700 MiB and a workspace of 32; and the attention's of 1024 positions, 16 heads of 64, a sample: a map of 2 x 16 x 1024^2 bytes is 32 MiB, row
// sums 64 KiB, and 1 MiB, which no measurement has.
TEST(MeasuredMemory, HasTheAttentionsWorkspaceBesideIt) {
  const Cluster cluster = load_cluster("dgx-h100");
  const Model model = load_model("gpt2-355m");
  Strategy asked{.batch = {.micro = 1, .global = 8}, .attention = AttentionKernel::Flash};
  asked.precision = DType::BF16;
  const auto answer = resolve(model, cluster, asked);
  ASSERT_TRUE(std::holds_alternative<Strategy>(answer));
  const Strategy& resolved = std::get<Strategy>(answer);
  MachineProfile profile{.device = "h100-80", .outside_memory = {700 * kMiB}};
  EXPECT_EQ(with_measured_memory(model, cluster, resolved, &profile).device_memory.framework,
            Bytes{(732 + 33) * kMiB + (64 << 10)});
  EXPECT_EQ(with_measured_memory(model, cluster, resolved, nullptr), resolved);
  Strategy stated = resolved;
  stated.device_memory.framework = Bytes{5};
  EXPECT_EQ(with_measured_memory(model, cluster, stated, &profile), stated);
  Strategy theirs = resolved;
  theirs.framework = "megatron";
  EXPECT_EQ(with_measured_memory(model, cluster, theirs, &profile).device_memory.framework, Bytes{732 * kMiB});
}

}  // namespace foreshard::measured_memory_test
