// Memory of sums of gradients: a root that gathers, and averages in shards.
#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "replay/light_clock.h"
#include "replay/replay.h"
#include "tests/strategy/support_random_strategy.h"

namespace foreshard::root_places_test {
namespace {

constexpr int kRanks = 8;

// Samples of 16 tokens: activations are small beside gradients.
Plan plan_of(Strategy s) {
  s.dp = kRanks, s.batch = {.micro = 1, .global = kRanks, .seq = 16};
  s.communication.overlap = Overlap{.gradients = false};
  s.communication.bucket = Bytes{std::int64_t{1} << 40};
  return lowered(load_model("gpt2-124m"), load_cluster("dgx-a100"), s).plan;
}

Result played(const Plan& plan) {
  player::LightClock clock;
  return replay(plan, load_cluster("dgx-a100"), clock, {});
}

Bytes gradients(const Plan& plan) {
  for (const Buffer& buffer : plan.roles[0].buffers)
    if (buffer.name == "gradients.0.0") return buffer.bytes;
  return {};
}

// n - 1 others send G each: streamed one place, naive a place for each of them. The others have none.
TEST(RootPlaces, AreTheRootsAlone) {
  for (const bool naive : {false, true}) {
    Strategy s;
    s.communication.algorithm = Algorithm::GatherToRoot;
    if (naive) s.communication.credit = {std::int64_t{1} << 40};
    const Plan plan = plan_of(s);
    const Bytes places = gradients(plan) * (naive ? kRanks - 1 : 1);
    ASSERT_GT(places.value, 240'000'000);
    const Result result = played(plan);
    int roots = 0, others = 0;
    Bytes of_root = {}, of_others = {}, more = {};
    for (const MemoryCurve& curve : result.memory.curves) {
      const std::vector<RankId>& members = result.trace.classes[curve.who.index()].members;
      const auto communication = static_cast<std::size_t>(Category::Communication);
      const bool root = members.front() == RankId{0};
      EXPECT_EQ(members.size() == 1, root);
      (root ? of_root : of_others) = sum(curve.peak);
      EXPECT_EQ(curve.peak[communication], root ? places : Bytes{});
      if (!root) more = sum(curve.peak) - sum(curve.start);  // activations of the backward, when nothing is gathered
      (root ? roots : others) += static_cast<int>(members.size());
    }
    EXPECT_EQ(roots, 1);
    EXPECT_EQ(others, kRanks - 1);
    EXPECT_EQ(of_root - of_others, places - more);
    EXPECT_LT(more.value, places.value / 10);
  }
}

// Each rank averages 1/n of the gradients and has 1/n of the states O: master copy and moments, 12 bytes a parameter.
TEST(RootPlaces, AveragingInShardsTakesLess) {
  const Plan whole = plan_of({}), shards = plan_of({.zero = {.stage = 1}});
  Bytes states = {};
  for (const Buffer& buffer : whole.roles[0].buffers)
    if (buffer.category == Category::Optimizer) states += buffer.bytes;
  EXPECT_EQ(states, gradients(whole) * 6);
  const Bytes saved = sum(played(whole).memory.curves[0].peak) - sum(played(shards).memory.curves[0].peak);
  EXPECT_NEAR(static_cast<double>(saved.value), static_cast<double>(states.value) * (1 - 1.0 / kRanks),
              1e-4 * static_cast<double>(states.value));
}

}  // namespace
}  // namespace foreshard::root_places_test
