#include "report/causes/critical_path.h"

#include <gtest/gtest.h>

#include "tests/report/played.h"

namespace foreshard::critical_path_test {
namespace {

using namespace played;

Nanoseconds of(const PathTimes& times, PathKind kind) { return times[static_cast<std::size_t>(kind)]; }

// Two stages, one micro-batch, F = 1, B = 2, transfers of 3: the path goes F0 (1), there (3), F0 (1) and B0 (2) of stage 1, back (3),
// B0 (2): 12 units, 6 of them compute and 6 on the wire.
TEST(CriticalPath, ComputeAndTransfersOfASmallPipeline) {
  const Result result = result_of({.p = 2, .m = 1, .latency = 3});
  const PathTimes times =
      path_times(result.plan, result.trace, critical_chain(result.trace, bind_spans(result.plan, result.trace)));
  EXPECT_EQ(of(times, PathKind::Compute).value, 6'000'000);
  EXPECT_EQ(of(times, PathKind::Transfer).value, 6'000'000);
  EXPECT_EQ(of(times, PathKind::Collective).value, 0);
}

// A reduction of 2 at the end lies on the path: 12 + 2 units.
TEST(CriticalPath, ACollectiveIsNamed) {
  const Result result = result_of({.p = 2, .m = 1, .latency = 3, .reduce = 2});
  const PathTimes times =
      path_times(result.plan, result.trace, critical_chain(result.trace, bind_spans(result.plan, result.trace)));
  EXPECT_EQ(of(times, PathKind::Collective).value, 2'000'000);
}

// The pieces of the path sum to the makespan, merged spans or not.
TEST(CriticalPath, SumsToTheMakespan) {
  for (const int p : {1, 2, 4, 7})
    for (const int latency : {0, 1, 5}) {
      const Result result = result_of({.p = p, .m = 6, .latency = latency, .reduce = 2, .update = 1});
      for (const Trace& trace : {result.trace, merged(result.trace)}) {
        Nanoseconds sum = {};
        for (const Nanoseconds part : path_times(result.plan, trace, critical_chain(trace, bind_spans(result.plan, trace)))) {
          EXPECT_GE(part, Nanoseconds{});
          sum += part;
        }
        EXPECT_EQ(sum, trace.makespan) << p << " " << latency;
      }
    }
}

}  // namespace
}  // namespace foreshard::critical_path_test
