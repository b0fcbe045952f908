// The laws of report/ on results of the real engine: lowered plans played by the simulator.
#include <gtest/gtest.h>

#include <numeric>

#include "core/cluster_file/cluster_file.h"
#include "core/result/order_bound.h"
#include "report/causes/binding.h"
#include "report/causes/bubbles.h"
#include "report/summary/summarize.h"
#include "sim/simulate.h"
#include "strategy/tune/tune.h"
#include "tests/report/played.h"

namespace foreshard::simulated_test {
namespace {

struct Case {
  const char* name = "";
  Strategy strategy = {};
  SimulateOptions options = {};
};

std::vector<Case> cases() {
  Strategy base{.dp = 2, .tp = 2, .pp = 4, .batch = {.global = 16, .seq = 256}};
  Strategy zero = base, wide = base, chunks = base;
  zero.zero.stage = 1;
  wide.pp = 1, wide.dp = 8, wide.zero.stage = 3;
  chunks.virtual_stages = 3;
  return {{"layer", base, {.granularity = Granularity::Layer}},
          {"op", base, {.granularity = Granularity::Op}},
          {"stage", zero, {.granularity = Granularity::Stage}},
          {"unfolded", base, {.granularity = Granularity::Stage, .folding = Folding::None}},
          {"chunks", chunks, {.granularity = Granularity::Layer}},
          {"zero 3", wide, {.granularity = Granularity::Layer}},
          {"straggler", base, {.granularity = Granularity::Stage, .folding = Folding::None, .stragglers = {{{3}, 1.5}}}}};
}

Result simulated(const Case& c, const Cluster& cluster) {
  auto lowered = tuned_plan(load_model("gpt2-124m"), cluster, c.strategy);
  if (const auto* refused = std::get_if<Infeasible>(&lowered)) ADD_FAILURE() << c.name << ": " << refused->reason;
  return simulate(std::get<Lowered>(std::move(lowered)).plan, cluster, c.options);
}

TEST(Simulated, TheLawsHoldForRealTraces) {
  const Cluster cluster = load_cluster("dgx-a100-x2");
  for (const Case& c : cases()) {
    const Result result = simulated(c, cluster);
    const Trace& trace = result.trace;
    const auto bindings = bind_spans(result.plan, trace);
    std::vector<Nanoseconds> sums(trace.classes.size());
    for (const Bubble& bubble : find_bubbles(result.plan, trace, bindings))
      sums[bubble.who.index()] += bubble.end - bubble.begin;
    for (std::size_t k = 0; k < sums.size(); ++k)
      EXPECT_EQ(sums[k], played::idle_of(result.plan, trace, {static_cast<std::int32_t>(k)})) << c.name << ", class " << k;
    const auto chain = critical_chain(trace, bindings);
    ASSERT_FALSE(chain.empty());
    EXPECT_EQ(chain.front().begin.value, 0) << c.name;
    EXPECT_EQ(chain.back().end, trace.makespan) << c.name;
    Nanoseconds holes = {};
    for (const ChainStep& link : chain) holes += trace.spans[static_cast<std::size_t>(link.span)].begin - link.begin;
    EXPECT_LE(holes.value, static_cast<std::int64_t>(chain.size())) << c.name << ": at most a rounding per link";
  }
}

TEST(Simulated, SummariesAreConsistent) {
  const Cluster cluster = load_cluster("dgx-a100-x2");
  for (const Case& c : cases()) {
    const Result result = simulated(c, cluster);
    const Summary s =
        summarize(result, cluster, {.tokens_per_sample = 256, .model_flops_per_sample = {1e11}}, order_bounds(result.plan));
    EXPECT_NEAR(std::accumulate(s.bubble.by_cause.begin(), s.bubble.by_cause.end(), 0.0), s.bubble.fraction, 1e-12);
    EXPECT_GT(s.bubble.fraction, 0) << c.name;
    const double in_line =
        s.communication.exposed - s.bubble.by_cause[static_cast<std::size_t>(BubbleCause::ExposedCommunication)];
    EXPECT_LT(s.bubble.fraction + in_line, 1) << c.name;  // the rest is compute
    EXPECT_GT(s.communication.exposed, 0) << c.name;
    EXPECT_EQ(s.gpus, 16);
    EXPECT_TRUE(s.feasible);
    EXPECT_GT(s.fit.margin.value, 0);
    EXPECT_GT(s.flops.hardware_utilization, 0);
    EXPECT_LT(s.flops.hardware_utilization, 1);
    const bool slow = !c.options.stragglers.empty();
    EXPECT_EQ(s.bubble.by_cause[static_cast<std::size_t>(BubbleCause::Straggler)] > 0.01, slow) << c.name;
    for (const StageMemory& row : s.memory) {
      EXPECT_LE(row.statics, row.live_peak);
      EXPECT_LE(row.live_peak, row.order_bound);
      EXPECT_LE(row.order_bound, row.arena);
    }
    for (const StageTimes& times : s.stage_times) EXPECT_GT(times.forward.value, 0) << c.name;
  }
}

}  // namespace
}  // namespace foreshard::simulated_test
