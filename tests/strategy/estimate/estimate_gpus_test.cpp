// The screen on clusters whose GPUs differ: the pace of unequal ranks beside the closed forms of equal ones and the schedule's
// recurrence, and whole strategies beside refining them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/cluster_file/cluster_file.h"
#include "strategy/estimate/estimate_mixed.h"
#include "strategy/estimate/estimate_pipeline.h"
#include "strategy/schedule/schedule.h"
#include "strategy/search/search.h"

namespace foreshard::estimate_gpus_test {

namespace {

// Seconds of a chunk.
struct Chunk {
  double forward = 0, backward = 0;
};

struct Case {
  Schedule schedule = Schedule::OneFOneB;
  UnequalRankTimes times = {};
  std::vector<Chunk> chunks = {};  // [3 rank + kind]: of the first stage, one between, the last one
};

Case random_case(std::mt19937& random, int rounds) {
  std::uniform_real_distribution<double> seconds(0.5, 2);
  Case c;
  const int p = std::uniform_int_distribution<int>(2, 6)(random), schedule = std::uniform_int_distribution<int>(0, 2)(random);
  c.schedule = schedule == 0 ? Schedule::GPipe : schedule == 1 ? Schedule::OneFOneB : Schedule::Interleaved;
  if (schedule == 2) c.times.chunks = std::uniform_int_distribution<int>(2, 4)(random);
  c.times.microbatches = p * rounds;
  for (int rank = 0; rank < p; ++rank) {
    for (int kind = 0; kind < 3; ++kind) c.chunks.push_back({.forward = seconds(random), .backward = seconds(random)});
    const Chunk* of = &c.chunks[c.chunks.size() - 3];
    const Chunk &own = of[rank == 0 ? 0 : rank + 1 == p ? 2 : 1], &between = of[1];
    const double more = c.times.chunks - 1;
    c.times.ranks.push_back({.forward = own.forward,
                             .backward = own.backward,
                             .more_forward = more * between.forward,
                             .more_backward = more * between.backward,
                             .chunk = between.forward + between.backward});
  }
  return c;
}

double recurrence(const Case& c) {
  const int p = static_cast<int>(c.times.ranks.size()), v = c.times.chunks;
  ScheduleTimes<double> times{.in_turn = true};
  for (int stage = 0; stage < p * v; ++stage) {
    const int kind = stage == 0 ? 0 : stage + 1 == p * v ? 2 : 1;
    const Chunk& of = c.chunks[static_cast<std::size_t>(3 * (stage % p) + kind)];
    times.forward.push_back(of.forward), times.input_grad.push_back(of.backward);
    times.weight_grad.push_back(0), times.hops.push_back(0);
  }
  const auto lists = schedule_entry(c.schedule).lists({.p = p, .m = static_cast<int>(c.times.microbatches), .v = v});
  return evaluate(lists, times)->end[0].back();
}

constexpr const char* kA100 = R"({"shape": "dgx-a100", "count": 1})";
constexpr const char* kH100 = R"({"shape": "dgx-h100", "count": 1})";
constexpr const char* kHalf = R"({"shape": "dgx-a100-40gb", "count": 1})";
Cluster nodes(const std::string& first, const std::string& second) {
  return parse_cluster(R"({"source": "test", "nodes": [)" + first + ", " + second + "]}", "test");
}

}  // namespace

// 200 pipelines of equal ranks, seed 3, all schedules.
TEST(MixedPace, EqualRanksTakeWhatTheClosedFormsSay) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> seconds(0.5, 2);
  for (int i = 0; i < 200; ++i) {
    const double f = seconds(random), b = f + seconds(random), w = b * 0.4;
    PipelineTimes equal{.ranks = std::uniform_int_distribution<int>(2, 9)(random)};
    equal.microbatches = std::uniform_int_distribution<int>(1, 30)(random);
    equal.hop = seconds(random) / 20;
    equal.forward.fill(f), equal.backward.fill(b), equal.weights.fill(w);
    for (const Schedule schedule : {Schedule::GPipe, Schedule::OneFOneB, Schedule::Interleaved, Schedule::ZeroBubbleH1,
                                    Schedule::ZeroBubbleH2, Schedule::ZeroBubbleV}) {
      equal.chunks = schedule == Schedule::Interleaved ? 3 : schedule == Schedule::ZeroBubbleV ? 2 : 1;
      UnequalRankTimes mixed{.chunks = equal.chunks, .microbatches = equal.microbatches};
      mixed.hop = equal.hop;
      const double more = equal.chunks - 1;
      mixed.ranks.assign(static_cast<std::size_t>(equal.ranks), {.forward = f,
                                                                 .backward = b,
                                                                 .more_forward = more * f,
                                                                 .more_backward = more * b,
                                                                 .weights = equal.chunks * w,
                                                                 .chunk = f + b});
      const double expected = pipeline_time(schedule_entry(schedule), equal);
      EXPECT_NEAR(unequal_rank_time(schedule_entry(schedule), mixed), expected, 1e-9 * expected)
          << i << ' ' << static_cast<int>(schedule);
      EXPECT_NEAR(mixed_bound(schedule_entry(schedule), mixed), pipeline_bound(schedule_entry(schedule), equal),
                  1e-9 * expected);
    }
  }
}

// 400 pipelines, seed 4, each rank and chunk with times of its own. No schedule is faster than the bound; GPipe and 1F1B in closed form are near the
// recurrence.
TEST(MixedPace, UnequalRanksBesideTheRecurrence) {
  std::mt19937 random(4);
  for (int i = 0; i < 400; ++i) {
    const Case c = random_case(random, i % 3 + 1);
    const double expected = recurrence(c);
    EXPECT_LE(mixed_bound(schedule_entry(c.schedule), c.times), expected * (1 + 1e-9)) << i;
    for (const RankTimes& rank : c.times.ranks) {
      const double work = rank.forward + rank.backward + rank.more_forward + rank.more_backward;
      EXPECT_GE(mixed_bound(schedule_entry(c.schedule), c.times), c.times.microbatches * work * (1 - 1e-9)) << i;
    }
    const double off = unequal_rank_time(schedule_entry(c.schedule), c.times) / expected - 1;
    if (c.times.chunks == 1) {
      EXPECT_LE(std::abs(off), 0.1) << i << ' ' << static_cast<int>(c.schedule) << ' ' << off;
    }
  }
}

// Two nodes with different GPUs, the slower ones before and, with half the memory, behind: strategies from all over the space are seen as refining sees
// them, and none is faster than its bound.
TEST(ScreenOfGpus, SeesStrategiesAsRefiningDoes) {
  Model model = load_model("gpt2-355m");
  std::get<Transformer>(model.shape).layers = 8;
  for (const Cluster& cluster : {nodes(kA100, kH100), nodes(kH100, kHalf)}) {
    SearchOptions options{.base = {.batch = {.global = 64}}};
    options.sample = 40, options.refine = 1, options.threads = 1;
    options.balance = options.schedules = options.best = false;
    const auto result = std::get<SearchResult>(search(model, cluster, options));
    std::vector<double> off, memory;
    for (const Candidate& each : result.sample) {
      off.push_back(std::abs(each.screened.time / each.estimate.time.value - 1));
      memory.push_back(std::abs(each.screened.peak / static_cast<double>(each.estimate.peak.value) - 1));
      EXPECT_LE(each.screened.bound, each.estimate.time.value * (1 + 1e-6));
    }
    ASSERT_GE(off.size(), 30U);
    std::sort(off.begin(), off.end()), std::sort(memory.begin(), memory.end());
    const auto of = [](const std::vector<double>& all, double part) {
      return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
    };
    EXPECT_LE(of(off, 0.5), 0.02);
    EXPECT_LE(of(off, 0.9), 0.1);
    EXPECT_LE(of(memory, 0.9), 0.05);
  }
}

}  // namespace foreshard::estimate_gpus_test
