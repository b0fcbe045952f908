// search with a schedule that is asked for: two routes, no flush, a file, the best order. The winner is that of refining every strategy.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "core/strategy/strategy_options.h"
#include "strategy/schedule/schedule.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"
#include "tests/strategy/support_lower.h"
#include "tests/strategy/support_search.h"

namespace foreshard::search_schedules_test {

namespace {

struct Asked {
  const char* schedule;
  int virtual_stages = 1;
};
const Asked kAsked[] = {
    {"chimera"},       {"dualpipe"},
    {"dualpipe-v", 2}, {"pipedream"},
    {"pipedream-2bw"}, {"pipemare"},
    {"1f1b-cells"},    {"interleaved-cells", 2},
    {"best"},          {"0F0 0F1 0F2 0F3 0I0 0I1 0I2 0I3 0W0 0W1 0W2 0W3; 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"}};

SearchOptions asked(const Asked& of, double reserve) {
  SearchOptions small = options(8, 256);
  set_option(small.base, of.schedule[0] == '0' ? "schedule_order" : "schedule", of.schedule, "test");
  small.base.virtual_stages = of.virtual_stages;
  small.base.device_memory.reserve = reserve;
  small.fixed = {"schedule", "virtual_stages", "overlap", "placement", "zero_group", "sequence_parallel"};
  small.balance = small.schedules = small.stages = small.best = false;
  return small;
}

struct Enumerated {
  double best = 1e300;
  int count = 0, deep = 0;  // that fit; of these, with a pipeline
};

// Plain loops over degrees, micro-batches, ZeRO and ways to recompute.
Enumerated enumerate(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  const int gpus = gpu_count(cluster), depth = std::get<Transformer>(model.shape).layers;
  Enumerated all;
  for (int tp = 1; tp <= gpus; tp *= 2)
    for (int pp = 1; tp * pp <= gpus; pp *= 2)
      for (std::int64_t micro = 1; micro <= options.base.batch.global; micro *= 2)
        for (int zero = 0; zero < 4; ++zero)
          for (const RecomputeKind kind : {RecomputeKind::None, RecomputeKind::Selective, RecomputeKind::Full})
            for (int layers = kind == RecomputeKind::Full ? -1 : 0; layers < (kind == RecomputeKind::Full ? depth : 1);
                 ++layers) {
              Strategy s = options.base;
              s.tp = tp, s.pp = pp, s.dp = gpus / tp / pp, s.batch.micro = micro, s.zero.stage = zero;
              s.recompute = {.kind = kind, .layers = layers};
              if ((zero > 0 && s.dp == 1) || pp * s.virtual_stages > depth) continue;
              const auto answer = tuned_plan(model, cluster, s, {.check = false});
              if (std::holds_alternative<Infeasible>(answer)) continue;
              ++all.count, all.deep += pp > 1;
              all.best = std::min(all.best, refine(std::get<Lowered>(answer), cluster).time.value);
            }
  return all;
}

}  // namespace

TEST(SearchSchedules, EqualsFullEnumeration) {
  const Model model = layers("llama-2-7b", 4);
  const Cluster cluster = workstation(4);
  for (const Asked& of : some_of(std::vector<Asked>(std::begin(kAsked), std::end(kAsked)), 4))
    for (const double reserve : {0.06, 0.7}) {
      SearchOptions small = asked(of, reserve);
      const Enumerated all = enumerate(model, cluster, small);
      const auto answer = search(model, cluster, small);
      if (all.count == 0) {
        EXPECT_TRUE(std::holds_alternative<Infeasible>(answer)) << of.schedule;
        continue;
      }
      ASSERT_TRUE(std::holds_alternative<SearchResult>(answer)) << of.schedule << " " << reserve;
      const auto& found = std::get<SearchResult>(answer);
      std::printf("%.13s, reserve %.2f: %d strategies fit, %d pipelines, best %.3f ms, pp %d\n", of.schedule, reserve,
                  all.count, all.deep, 1e3 * all.best, found.ranked.front().strategy.pp);
      EXPECT_DOUBLE_EQ(found.ranked.front().score, all.best) << of.schedule << " " << reserve;
      EXPECT_LE(found.bound, all.best) << of.schedule << " " << reserve;
      EXPECT_GT(all.deep, 0) << of.schedule << " " << reserve;
      small.prune = false;
      EXPECT_EQ(std::get<SearchResult>(search(model, cluster, small)).ranked.front().score, found.ranked.front().score);
    }
}

// No strategy that is refined is faster than its own bound.
TEST(SearchSchedules, BoundsHold) {
  int strategies = 0;
  for (const Asked& of : kAsked) {
    SearchOptions all = asked(of, 0.06);
    all.base.batch.global = 16, all.sample = how_many(15, 40), all.refine = 1;
    all.fixed.erase(all.fixed.begin() + 2, all.fixed.end());  // all but the schedule and its stages
    const auto answer = search(layers("llama-2-7b", 4), load_cluster("workstation-rtx4090"), all);
    if (std::holds_alternative<Infeasible>(answer)) continue;
    for (const Candidate& each : std::get<SearchResult>(answer).sample) {
      EXPECT_LE(each.screened.bound, each.estimate.time.value * (1 + 1e-6)) << of.schedule << " " << to_json(each.strategy);
      ++strategies;
    }
  }
  EXPECT_GE(strategies, how_many(60, 150));
}

Model mixture(std::int64_t width) {
  Transformer t = small_transformer(8);
  t.tied_embeddings = false, t.norm = NormKind::RmsNorm, t.activation = ActivationKind::SwiGlu;
  t.qkv_bias = t.projection_bias = t.mlp_bias = false;
  t.block.experts = {.count = 8, .chosen = 2, .width = width};
  return {.name = "mixture", .shape = t};
}

// Cells hide all-to-alls of experts, so they are tried where there are some, unless the given overlaps have no stream for operators'
// communication.
TEST(SearchSchedules, CellsWhereExpertsAreShared) {
  for (const auto& [given, overlaps] : {std::pair{true, false}, {true, true}, {false, false}}) {
    SearchOptions free = options(8, 64);
    free.sample = 400, free.base.communication.overlap = Overlap{.tp = overlaps};
    free.fixed = {"tp", "cp", "zero", "recompute", "placement"};
    if (given) free.fixed.emplace_back("overlap");
    const auto result = std::get<SearchResult>(search(mixture(32), load_cluster("dgx-a100"), free));
    int cells = 0, of_one_stage = 0;
    for (const Candidate& each : result.sample)
      if (each.strategy.stages.empty() && schedule_entry(*each.strategy.pipeline.schedule).cells) {
        EXPECT_GT(each.strategy.experts.ep, 1);
        EXPECT_TRUE(each.strategy.communication.overlap->tp);
        ++cells, of_one_stage += each.strategy.pp == 1;
      }
    EXPECT_EQ(cells > 0, overlaps || !given);
    EXPECT_EQ(of_one_stage > 0, overlaps || !given);
  }
}

// In a cell what communicates is beside what is computed. No such strategy is faster than its bound, not with delayed weight gradients
// either, be it bound by its products (wide experts), by its all-to-alls (narrow ones), or by both (between two nodes).
TEST(SearchSchedules, BoundsOfCellsHold) {
  Model narrow = mixture(32), wide = mixture(4096);
  for (Model* model : {&narrow, &wide}) {
    auto& t = std::get<Transformer>(model->shape);
    t.hidden = 1024, t.head_dim = 128, t.max_positions = 4096;
  }
  const struct {
    Model model;
    const char* cluster;
    int ep;
  } cases[] = {{narrow, "dgx-a100", 8}, {wide, "dgx-a100", 8}, {layers("qwen3-30b-a3b", 4), "dgx-h100-x2", 16}};
  int strategies = 0, delayed = 0;
  for (const auto& [model, name, ep] : cases) {
    const Cluster cluster = load_cluster(name);
    SearchOptions free = options(32, 4096);
    free.sample = how_many(10, 80), free.refine = 1,
    free.prune = free.stages = free.best = free.balance = free.schedules = false;
    free.fixed = {"ep", "etp", "cp", "zero", "placement"}, free.base.experts.ep = ep;
    double closest = 0;
    const auto found = std::get<SearchResult>(search(model, cluster, free));
    for (const Candidate& each : found.sample) {
      if (!schedule_entry(*each.strategy.pipeline.schedule).cells) continue;
      const double bound = each.screened.bound * (1 - 1e-6);
      EXPECT_LE(bound, each.estimate.time.value) << name << " " << to_json(each.strategy);
      ++strategies, closest = std::max(closest, bound / each.estimate.time.value);
      Strategy late = each.strategy;
      late.pipeline.delay_wgrad = true;
      const auto answer = tuned_plan(model, cluster, late);
      if (std::holds_alternative<Infeasible>(answer)) continue;
      EXPECT_LE(bound, refine(std::get<Lowered>(answer), cluster).time.value) << name << " " << to_json(late);
      ++delayed;
    }
    EXPECT_GT(closest, 0.6) << name;
  }
  EXPECT_GE(strategies, how_many(6, 60));
  EXPECT_GE(delayed, how_many(4, 40));
}

// Sixteen ranks cannot share experts on eight GPUs, also where both degrees are given.
TEST(SearchSchedules, NoGridWithoutRoomForTheExperts) {
  SearchOptions given = options(8, 64);
  given.base.experts.ep = 16, given.fixed = {"ep", "etp"};
  EXPECT_TRUE(std::holds_alternative<Infeasible>(search(mixture(32), load_cluster("dgx-a100"), given)));
}

// Every stage is on two ranks: their states can be cut, their gradients cannot.
TEST(SearchSchedules, TwoRoutesTryZeroOne) {
  SearchOptions two = options(32, 64);
  two.base.pp = 4, two.base.pipeline.schedule = Schedule::DualPipe;
  two.fixed = {"pp", "schedule"}, two.sample = 100;
  const auto result = std::get<SearchResult>(search(layers("llama-2-7b", 8), load_cluster("dgx-a100"), two));
  std::set<int> stages;
  for (const Candidate& each : result.sample) stages.insert(each.strategy.zero.stage);
  EXPECT_EQ(stages, (std::set<int>{0, 1}));
}

// Those that change what is trained, or are not what frameworks run, are looked at only when they are asked for.
TEST(SearchSchedules, NoneOfThemByDefault) {
  SearchOptions free = options(16, 256);
  free.sample = 300, free.fixed = {"pp"}, free.base.pp = 4;
  const auto result = std::get<SearchResult>(search(layers("llama-2-7b", 8), load_cluster("dgx-a100"), free));
  EXPECT_GE(result.sample.size(), 50u);
  for (const auto* list : {&result.sample, &result.ranked})
    for (const Candidate& each : *list)
      if (each.strategy.stages.empty()) {
        const ScheduleEntry& entry = schedule_entry(*each.strategy.pipeline.schedule);
        EXPECT_FALSE(entry.on_request) << entry.name;
        EXPECT_FALSE(entry.backwards_per_update) << entry.name;
      }
}

}  // namespace foreshard::search_schedules_test
