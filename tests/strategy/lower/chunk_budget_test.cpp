// The budget of a policy of chunks: what its share of a device leaves beside everything else.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/count_text.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "strategy/lower/lower.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::chunk_budget_test {
namespace {

// From the plan on a device where nothing binds.
struct Held {
  Bytes others = {}, largest = {}, chunks = {};
};
Held held_by(const Plan& plan) {
  Held held{.others = arena_bytes(plan.roles[0], Space::Device) + plan.framework};
  for (const Buffer& buffer : plan.roles[0].buffers) {
    if (!buffer.name.starts_with("gathered")) continue;
    held.chunks += buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
    held.largest = std::max(held.largest, buffer.bytes);
  }
  held.others = held.others - held.chunks;
  return held;
}

}  // namespace

TEST(ChunkBudget, HasRoomForTheLargestChunk) {
  const Model model = load_model("gpt2-1.5b");
  Cluster cluster = load_cluster("dgx-a100");
  const Strategy strategy{.batch = {.micro = 1}, .policy = "patrickstar"};
  const Held held = held_by(lowered(model, cluster, strategy).plan);
  const auto with_room = [&](Bytes room) {
    for (Gpu& gpu : cluster.gpus)
      gpu.memory = Bytes{static_cast<std::int64_t>(static_cast<double>((held.others + room).value) / 0.8) + 2};
    return lower(model, cluster, strategy);
  };
  const auto refused = with_room(held.largest - Bytes{1000});
  ASSERT_TRUE(std::holds_alternative<Infeasible>(refused));
  EXPECT_EQ(std::get<Infeasible>(refused).reason,
            "policy patrickstar: beside everything else the device leaves " + count_text(held.largest.value / 2 - 500) +
                " elements to chunks of parameters; the largest chunk has " + count_text(held.largest.value / 2));
  const auto one_chunk = with_room(held.largest);
  ASSERT_TRUE(std::holds_alternative<Lowered>(one_chunk)) << std::get<Infeasible>(one_chunk).reason;
  const Held now = held_by(std::get<Lowered>(one_chunk).plan);
  EXPECT_EQ(now.others, held.others);
  EXPECT_LT(now.chunks, held.chunks);
}

}  // namespace foreshard::chunk_budget_test
