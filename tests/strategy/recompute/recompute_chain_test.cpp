// The chain's recurrence against a shortest path through all states, and against Revolve's closed form.
#include "strategy/recompute/recompute_chain.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <random>
#include <tuple>

namespace foreshard::recompute_chain_test {

namespace {

// Revolve (Griewank and Walther 2000): how many forwards a chain of equal stages needs, each once with everything kept, with
// room for `checkpoints` inputs beside the first one. With s = checkpoints + 1 and the least r for which C(s + r, r) >= steps:
//   (r + 1) steps - C(s + r, r - 1)
std::int64_t revolve_forwards(int steps, int checkpoints) {
  const auto binomial = [](std::int64_t n, std::int64_t k) {
    std::int64_t result = 1;
    for (std::int64_t i = 1; i <= k; ++i) result = result * (n - k + i) / i;
    return result;
  };
  if (steps <= 0) return 0;
  const std::int64_t places = checkpoints + 1;
  std::int64_t r = 0;
  while (binomial(places + r, r) < steps) ++r;
  return (r + 1) * steps - (r > 0 ? binomial(places + r, r - 1) : 0);
}

using State = std::tuple<int, int, int, int>;  // kept inputs, kept stages (bits), stages whose backward is to come, front or -1

// Dijkstra over every persistent schedule: the front is the input that the forwards are working on.
double shortest(const std::vector<RecomputeStage>& stages, int memory) {
  const int count = static_cast<int>(stages.size());
  std::map<State, double> known;
  using Entry = std::pair<double, State>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto offer = [&](double seconds, const State& state) {
    const auto found = known.find(state);
    if (found != known.end() && found->second <= seconds) return;
    known[state] = seconds;
    queue.push({seconds, state});
  };
  offer(0, {0, 0, count, 0});
  while (!queue.empty()) {
    const auto [seconds, state] = queue.top();
    queue.pop();
    if (known[state] < seconds) continue;
    const auto [inputs, kept, left, front] = state;
    if (left == 0) return seconds;
    int used = 0;
    for (int i = 0; i < count; ++i)
      used += (inputs >> i & 1) * stages[static_cast<std::size_t>(i)].input +
              (kept >> i & 1) * stages[static_cast<std::size_t>(i)].everything;
    const auto there = [&, inputs = inputs, kept = kept](int i) {
      return i == 0 || (inputs >> i & 1) || (kept >> (i - 1) & 1);
    };
    for (int i = 0; i < left; ++i)
      if (there(i)) offer(seconds, {inputs, kept, left, i});
    if (front >= 0 && front < left) {
      const RecomputeStage& stage = stages[static_cast<std::size_t>(front)];
      offer(seconds + stage.forward, {inputs, kept, left, front + 1});
      if (!there(front) && used + stage.input <= memory) offer(seconds, {inputs | 1 << front, kept, left, front});
      if (there(front) && !(kept >> front & 1) && used + stage.everything <= memory)
        offer(seconds + stage.forward, {inputs, kept | 1 << front, left, front + 1});
    }
    const int last = left - 1;
    if ((kept >> last & 1) && there(last))
      offer(seconds + stages[static_cast<std::size_t>(last)].backward, {inputs & ~(1 << last), kept & ~(1 << last), last, -1});
  }
  return std::numeric_limits<double>::infinity();
}

// Plays the steps: what is kept fits, every backward has what it reads. Gives the seconds.
double play(const std::vector<RecomputeStage>& stages, const std::vector<RecomputeStep>& steps, int memory) {
  std::vector<int> inputs(stages.size() + 1, 0), kept(stages.size(), 0);
  inputs[0] = 1;
  int used = 0, front = 0, left = static_cast<int>(stages.size());
  double seconds = 0;
  for (const RecomputeStep& step : steps) {
    const auto i = static_cast<std::size_t>(step.stage);
    const bool there = inputs[i] || (i > 0 && kept[i - 1]);
    if (step.work == RecomputeWork::Backward) {
      EXPECT_TRUE(kept[i] && there && step.stage == left - 1);
      seconds += stages[i].backward;
      used -= stages[i].everything + (i > 0 && inputs[i] ? stages[i].input : 0);
      kept[i] = 0, --left;
      if (i > 0) inputs[i] = 0;
      continue;
    }
    EXPECT_TRUE(there || front == step.stage);
    seconds += stages[i].forward;
    front = step.stage + 1;
    if (step.work == RecomputeWork::ForwardKeepInput) inputs[i + 1] = 1, used += stages[i + 1].input;
    if (step.work == RecomputeWork::ForwardKeepAll) kept[i] = 1, used += stages[i].everything;
    EXPECT_LE(used, memory);
  }
  EXPECT_EQ(left, 0);
  return seconds;
}

}  // namespace

TEST(RecomputeChain, EqualsTheShortestPathOverAllPersistentSchedules) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> number(1, 6), size(1, 3), more(0, 4);
  int possible = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<RecomputeStage> stages;
    for (int i = 0; i < 1 + trial % 5; ++i) {
      const double forward = number(random), backward = number(random);
      const int input = size(random);
      stages.push_back({forward, backward, input, 0});
    }
    for (std::size_t i = 0; i < stages.size(); ++i)  // everything holds the output, too
      stages[i].everything = (i + 1 < stages.size() ? stages[i + 1].input : 1) + more(random);
    const int memory = 2 + trial / 5 % 12;
    const RecomputePlan plan = recompute_chain(stages, memory);
    ASSERT_EQ(plan.seconds, shortest(stages, memory)) << trial;
    if (plan.steps.empty()) continue;
    ++possible;
    ASSERT_EQ(play(stages, plan.steps, memory), plan.seconds) << trial;
  }
  EXPECT_GT(possible, 500);
}

// One stage at a time is kept whole (c + 2 units of the 2 c + 3) beside at most c + 1 inputs, one of which is its own.
TEST(RecomputeChain, EqualStagesNeedTheForwardsOfRevolve) {
  for (int steps = 1; steps <= 24; ++steps)
    for (int checkpoints = 0; checkpoints <= 6; ++checkpoints) {
      const std::vector<RecomputeStage> stages(static_cast<std::size_t>(steps), {1, 0, 1, checkpoints + 2});
      EXPECT_EQ(recompute_chain(stages, 2 * checkpoints + 3).seconds, static_cast<double>(revolve_forwards(steps, checkpoints)))
          << steps << " " << checkpoints;
    }
}

// Two stages, no checkpoint: F0, F1 kept, B1, F0 kept, B0. Three: 3 + 2 + 1.
TEST(RecomputeChain, ByHand) {
  EXPECT_EQ(revolve_forwards(1, 0), 1);
  EXPECT_EQ(revolve_forwards(2, 0), 3);
  EXPECT_EQ(revolve_forwards(3, 0), 6);
  EXPECT_EQ(recompute_chain({{1, 2, 1, 1}, {1, 2, 1, 1}}, 2).seconds, 6);  // all kept: nothing twice
  EXPECT_EQ(recompute_chain({{1, 2, 1, 1}, {1, 2, 1, 1}}, 1).steps.empty(), true);
  EXPECT_TRUE(recompute_chain({{1, 1, 1, 5}}, 4).steps.empty());
}

}  // namespace foreshard::recompute_chain_test
