// Which steps become units that graphs replay.
#include "exec/cuda/step_graphs.h"

#include <gtest/gtest.h>

#include "exec/cuda/gpu_task.h"
#include "tests/cuda/fake_runtime.h"

namespace foreshard::gpu::step_graphs_test {
namespace {

constexpr StreamId kFirst{0}, kSecond{1};

struct Repeating : GpuTask {
  void enqueue(OnStream&, int) override {}
  bool repeats() const override { return true; }
};
struct Changing : GpuTask {
  void enqueue(OnStream&, int) override {}
};

}  // namespace

// A stream with the steps 0 1 | event | 2 3 4 5, where step 4 changes from run to run, and another with step 6 between them:
// units 0-1 and 2-3; 5 and 6 are single.
TEST(StepGraphs, NeighboursThatRepeatAreAUnit) {
  FakeRuntime runtime;
  StepGraphs graphs(runtime);
  Repeating task;
  Changing changing;
  std::vector<StepGraphs::Place> places;
  for (int run = 10; run < 13; ++run) {
    places.clear();
    for (const int step : {0, 1}) places.push_back(graphs.step(kFirst, step, &task, run));
    graphs.event(kFirst);
    for (const int step : {2, 3}) places.push_back(graphs.step(kFirst, step, &task, run));
    const StepGraphs::Place other = graphs.step(kSecond, 6, &task, run);
    places.push_back(graphs.step(kFirst, 4, &changing, run));
    places.push_back(graphs.step(kFirst, 5, &task, run));
    places.push_back(other);
    for (const StepGraphs::Place& place : places) {
      if (run < 12) {
        EXPECT_EQ(place.unit, -1) << run;
      }
    }
  }
  ASSERT_EQ(graphs.count(), 2);
  const std::vector<std::pair<int, std::size_t>> expected = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {-1, 0}, {-1, 0}, {-1, 0}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(places[i].unit, expected[i].first) << i;
    EXPECT_EQ(places[i].at, expected[i].second) << i;
  }
  ASSERT_EQ(graphs.unit(1).steps.size(), 2U);
  EXPECT_EQ(graphs.unit(1).steps[0].step, 2);
  EXPECT_EQ(graphs.unit(1).steps[1].step, 3);
  EXPECT_EQ(graphs.unit(1).steps[1].task, &task);
}

// Steps of two streams that take turns are units of their own streams. A step without a task ends a unit.
TEST(StepGraphs, StreamsDoNotMix) {
  FakeRuntime runtime;
  StepGraphs graphs(runtime);
  Repeating task;
  StepGraphs::Place third, lonely;
  for (int run = 0; run < 3; ++run) {
    graphs.step(kFirst, 0, &task, run);
    graphs.step(kSecond, 1, &task, run);
    third = graphs.step(kFirst, 2, &task, run);
    graphs.step(kSecond, 3, nullptr, run);
    lonely = graphs.step(kSecond, 4, &task, run);
  }
  EXPECT_EQ(graphs.count(), 1);
  EXPECT_EQ(third.unit, 0);
  EXPECT_EQ(third.at, 1U);
  EXPECT_EQ(lonely.unit, -1);
}

}  // namespace foreshard::gpu::step_graphs_test
