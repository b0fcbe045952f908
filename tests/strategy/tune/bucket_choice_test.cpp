// The units in which gradients are summed, where they are to be chosen.
#include "strategy/tune/bucket_choice.h"
#include "core/cluster_file/cluster_file.h"
#include "replay/replay.h"
#include "strategy/state/sum_order.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"
#include "tests/strategy/support_random_strategy.h"

namespace foreshard::bucket_choice_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// Two layers with forwards and backwards of 1 s, gradients of 4 MiB (the second) and 2 MiB, 1 MiB/s. A unit is full when it has as many bytes as a
// bucket; the second layer's come first.
std::optional<double> hand_case(const BucketSettings& units) {
  const double bucket = units.bucket.value > 0 ? static_cast<double>(units.bucket.value) / kMiB : 6;
  const SumChannel channel{.bandwidth = {1},
                           .order = units.order,
                           .partition = static_cast<double>(units.partition.value) / kMiB,
                           .credit = static_cast<double>(units.credit.value) / kMiB};
  if (bucket > 4) return schedule_sums({{.ready = {2}, .bytes = 6, .forward = {2}}}, channel).end.value;
  return schedule_sums({{.ready = {2}, .bytes = 2, .forward = {1}}, {.ready = {1}, .bytes = 4, .forward = {1}}}, channel)
      .end.value;
}

// One unit of all: summed in [2, 8], 10. Two: [1, 5] and [5, 7], 9. By priority in parts of at most 2: 8.
TEST(BucketChoice, TheHandCase) {
  EXPECT_EQ(hand_case({}), 10);
  const BucketSettings ready = fastest_buckets({6 * kMiB}, SumOrder::Ready, hand_case);
  EXPECT_EQ(ready, (BucketSettings{.bucket = {3 * kMiB}}));
  EXPECT_EQ(hand_case(ready), 9);
  const BucketSettings first = fastest_buckets({6 * kMiB}, SumOrder::Priority, hand_case);
  EXPECT_EQ(first.order, SumOrder::Priority);
  EXPECT_GT(first.partition, Bytes{});
  EXPECT_EQ(hand_case(first), 8);
}

// What cannot be made is not chosen; of equals the first, which is the default.
TEST(BucketChoice, EqualsStayTheDefault) {
  EXPECT_EQ(fastest_buckets({64 * kMiB}, SumOrder::Ready, [](const BucketSettings&) { return 1.0; }), BucketSettings{});
  const auto only = [](const BucketSettings& units) {
    return units.bucket == Bytes{16 * kMiB} ? std::optional(3.0) : std::nullopt;
  };
  EXPECT_EQ(fastest_buckets({64 * kMiB}, SumOrder::Ready, only).bucket, Bytes{16 * kMiB});
  int tried = 0;
  fastest_buckets({2 * kMiB}, SumOrder::Ready, [&](const BucketSettings& units) {
    EXPECT_TRUE(units.bucket == Bytes{} || units.bucket.value >= kMiB);
    return static_cast<double>(++tried);
  });
  EXPECT_EQ(tried, 3);  // the default, all, a half
}

double seconds(const Plan& plan, const Cluster& cluster, SumOrder asked) {
  const double one = makespan_of(plan, cluster);
  return asked == SumOrder::Ready ? one : makespan_of(plan, cluster, {.memory = false, .runs = 2}) - one;
}

TEST(BucketChoice, IsNeverSlowerThanTheDefault) {
  RandomChoice random(20261124);
  const Cluster cluster = load_cluster("eth25-a100-x2");
  const int most = how_many(8, 40);
  int cases = 0, sooner = 0;
  for (int round = 0; round < 200 && cases < most; ++round) {
    const Model model =
        random(0, 3) > 0 ? load_model(random.one_of<std::string>({"gpt2-124m", "gpt2-355m"})) : random_model(random);
    Strategy s = random_strategy(random);
    s.batch.seq = 0, s.batch.micro = random.one_of({1, 4, 8}), s.batch.global = 16 * s.batch.micro;
    s.dp = 0, s.recompute = {}, s.offload = {}, s.communication.parts = {};
    s.communication.order = random.one_of({SumOrder::Ready, SumOrder::Priority});
    s.communication.partition = s.communication.credit = {};
    s.communication.bucket = {};
    const auto plain = tuned_plan(model, cluster, s, {.ignore_memory = true, .check = false});
    const auto* before = std::get_if<Lowered>(&plain);
    if (!before || before->strategy.dp * before->strategy.cp == 1) continue;
    s.communication.bucket = {-1};
    const auto chosen = tuned_plan(model, cluster, s, {.ignore_memory = true, .check = false});
    ASSERT_TRUE(std::holds_alternative<Lowered>(chosen)) << std::get<Infeasible>(chosen).reason;
    const Lowered& after = std::get<Lowered>(chosen);
    EXPECT_GT(after.strategy.communication.bucket, Bytes{});
    const double was = seconds(before->plan, cluster, s.communication.order),
                 is = seconds(after.plan, cluster, s.communication.order);
    EXPECT_LE(is, was * (1 + 1e-12)) << to_json(after.strategy);
    ++cases, sooner += is < was * 0.99;
  }
  EXPECT_EQ(cases, most);
  EXPECT_GT(sooner, how_many(0, 5));
}

// gpt2-1.5b on 16 GPUs with 25 Gbit/s a node: its gradients are 77 buckets of 40 MiB, which hide and overtake.
TEST(BucketChoice, SavesWhatCanBeHidden) {
  const Model model = load_model("gpt2-1.5b");
  const Cluster cluster = load_cluster("eth25-a100-x2");
  Strategy s{.batch = {.micro = 32, .global = 512}};
  const auto time = [&](Bytes bucket, SumOrder order) {
    s.communication.bucket = bucket, s.communication.order = order;
    const auto answer = tuned_plan(model, cluster, s, {.ignore_memory = true, .check = false});
    const Lowered& lowered = std::get<Lowered>(answer);
    EXPECT_EQ(lowered.strategy.communication.order, order);
    return seconds(lowered.plan, cluster, order);
  };
  EXPECT_LT(time({-1}, SumOrder::Ready), time({}, SumOrder::Ready));
  EXPECT_LT(time({-1}, SumOrder::Priority), 0.98 * time({}, SumOrder::Priority));
}

}  // namespace
}  // namespace foreshard::bucket_choice_test
