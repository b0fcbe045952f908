// The shares of runs that overlap are those of their period: the pipeline neither fills nor drains in it.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/cluster_file/cluster_file.h"
#include "report/summary/summarize.h"
#include "sim/simulate.h"
#include "strategy/tune/tune.h"

namespace foreshard::steady_shares_test {
namespace {

TEST(SteadyShares, IdleTimeIsWhatTheComputesLeaveOfThePeriod) {
  const Cluster cluster = load_cluster("dgx-a100");
  Model model = load_model("gpt2-355m");
  std::get<Transformer>(model.shape).tied_embeddings = false;
  for (const Schedule schedule : {Schedule::PipeDream, Schedule::PipeDream2BW, Schedule::PipeMare}) {
    Strategy s{.dp = 1, .pp = 4, .pipeline = {.schedule = schedule}, .batch = {.micro = 2, .global = 16, .seq = 1024}};
    auto answer = tuned_plan(model, cluster, s);
    ASSERT_TRUE(std::holds_alternative<Lowered>(answer));
    Result result = simulate(std::get<Lowered>(answer).plan, cluster, {.granularity = Granularity::Op});
    std::vector<double> busy(result.trace.classes.size());
    for (const Span& span : result.trace.spans)
      if (span.stream.value == 0) busy[span.who.index()] += to_seconds(span.end - span.begin).value;
    const Summary steady = summarize(result, cluster, {});
    EXPECT_EQ(steady.iteration_time.value, result.period_s);
    for (const BubbleCause none : {BubbleCause::WarmUp, BubbleCause::Drain})
      EXPECT_EQ(steady.bubble.by_cause[static_cast<std::size_t>(none)], 0);
    for (std::size_t c = 0; c < busy.size(); ++c)
      EXPECT_NEAR(steady.bubble.per_stage[result.trace.classes[c].role.index()], 1 - busy[c] / result.period_s, 1e-6);
    EXPECT_LE(*std::ranges::min_element(steady.bubble.per_stage), 0.01);

    result.period_s = 0;  // a run by itself
    const Summary alone = summarize(result, cluster, {});
    EXPECT_EQ(alone.iteration_time.value, result.makespan_s);
    EXPECT_GT(alone.bubble.fraction, steady.bubble.fraction + 0.1);
    EXPECT_GT(alone.bubble.by_cause[static_cast<std::size_t>(BubbleCause::Drain)], 0.02);
  }
}

}  // namespace
}  // namespace foreshard::steady_shares_test
