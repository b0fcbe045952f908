// `--schedule best`: the order that is found is what the plan runs, keeps the memory, and is never slower than a rule that does.
#include "strategy/tune/order_choice.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/strategy/strategy_options.h"
#include "replay/replay.h"
#include "strategy/resolve/resolve.h"
#include "strategy/schedule/schedule.h"
#include "strategy/tune/tune.h"

namespace foreshard::order_choice_test {
namespace {

struct Uneven {
  const char* model;
  const char* cluster;
  int pp;
  const char* split;
  int micro, batch;
  double reserve;  // of the memory: less room for micro-batches in flight
};

Strategy strategy_of(const Uneven& of, const std::string& schedule) {
  Strategy s{.dp = 1, .pp = of.pp, .pipeline = {.layer_split = of.split}, .batch = {.micro = of.micro, .global = of.batch}};
  s.batch.seq = 1024;
  s.device_memory.reserve = of.reserve;
  set_option(s, "schedule", schedule, "test");
  return s;
}

// Negative: it does not fit.
double seconds_of(const Uneven& of, const std::string& schedule) {
  const Cluster cluster = load_cluster(of.cluster);
  const auto answer = tuned_plan(load_model(of.model), cluster, strategy_of(of, schedule));
  const auto* lowered = std::get_if<Lowered>(&answer);
  if (!lowered) return -1;
  const auto defects = check_plan(lowered->plan);
  EXPECT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  return makespan_of(lowered->plan, cluster);
}

// With most of the memory kept free zb-h2 does not fit, then not even zb-h1.
const Uneven kCases[] = {
    {"gpt2-355m", "dgx-a100", 4, "4,6,9,5", 4, 20, 0.06},         {"gpt2-355m", "dgx-a100", 4, "4,6,9,5", 4, 20, 0.90},
    {"gpt2-355m", "dgx-a100", 4, "4,6,9,5", 4, 20, 0.91},         {"gpt2-355m", "dgx-a100", 4, "4,6,9,5", 4, 20, 0.92},
    {"gpt2-355m", "dgx-a100", 4, "2,10,6,6", 4, 20, 0.06},        {"gpt2-355m", "eth25-a100", 4, "3,6,9,6", 1, 8, 0.06},
    {"llama-2-7b", "dgx-a100", 8, "2,4,6,4,4,4,4,4", 1, 12, 0.06}};

}  // namespace

TEST(OrderChoice, NeverSlowerThanARule) {
  int faster = 0, full = 0;
  for (const Uneven& of : kCases) {
    const double best = seconds_of(of, "best");
    double rule = 0;
    for (const char* name : {"1f1b", "zb-h1", "zb-h2", "gpipe"}) {
      const double seconds = seconds_of(of, name);
      full += seconds < 0;
      if (seconds > 0 && (rule == 0 || seconds < rule)) rule = seconds;
    }
    std::printf("%s on %s, %s, reserve %.2f: best %.3f ms, best rule %.3f ms\n", of.model, of.cluster, of.split, of.reserve,
                1e3 * best, 1e3 * rule);
    ASSERT_GT(rule, 0) << of.split;
    EXPECT_LE(best, rule) << of.split;
    faster += best > 0 && best < 0.999 * rule;
  }
  EXPECT_GE(faster, 3);  // else nothing was searched
  EXPECT_GE(full, 4);    // else the memory was never a limit
}

TEST(OrderChoice, ThePlanRunsTheListsThatWereFound) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("dgx-a100");
  const Strategy open = strategy_of(kCases[0], "best");
  const Strategy found = std::get<Tuned>(tune(model, cluster, open)).strategy;
  EXPECT_FALSE(leaves_open(found));
  ASSERT_EQ(found.pipeline.schedule, Schedule::Listed);
  ASSERT_EQ(found.pipeline.order.size(), 4u);
  const Plan plan = std::get<Lowered>(tuned_plan(model, cluster, open)).plan;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    std::string ran;
    for (const Action& action : plan.roles[rank].actions)
      for (const Does& does : action.does)
        if (does.work != Work::Update)
          ran += (ran.empty() ? "" : " ") + to_text(ScheduleOp{does.work, does.stage, does.microbatch});
    EXPECT_EQ(ran, found.pipeline.order[rank]);
  }
  EXPECT_EQ(parse_strategy(to_json(found), "saved"), found);
  EXPECT_EQ(parse_strategy(to_json(open), "saved"), open);
}

TEST(OrderChoice, OfOneRankThereIsOneOrder) {
  Strategy s = strategy_of(kCases[0], "best");
  s.pp = 1, s.pipeline.layer_split = {};
  EXPECT_EQ(std::get<Tuned>(tune(load_model("gpt2-355m"), load_cluster("dgx-a100"), s)).strategy.pipeline.schedule,
            Schedule::OneFOneB);
}

TEST(OrderChoice, WhatItCannotOrderIsRefused) {
  const auto why = [](auto change) {
    Strategy s = strategy_of(kCases[0], "best");
    change(s);
    const auto answer = tune(load_model("gpt2-355m"), load_cluster("dgx-a100"), s);
    const auto* refused = std::get_if<Infeasible>(&answer);
    return refused ? refused->reason : "no refusal";
  };
  EXPECT_EQ(why([](Strategy& s) { s.virtual_stages = 2, s.pipeline.layer_split = {}; }),
            "schedule best finds an order of one stage per rank, the strategy asks for 2");
  EXPECT_EQ(why([](Strategy& s) { s.zero.stage = 2; }), "schedule best needs unsharded gradients, which ZeRO 2 shards");
  EXPECT_EQ(why([](Strategy& s) { s.recompute.kind = RecomputeKind::Rotor; }),
            "schedule best finds an order for times that it knows, recompute rotor plans its runs for an order");
}

}  // namespace foreshard::order_choice_test
