// tune leaves nothing open, and lower obeys what it decided.
#include "strategy/tune/tune.h"

#include <gtest/gtest.h>

#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "core/strategy/strategy_options.h"

namespace foreshard::tune_test {
namespace {

Strategy with(const std::string& recompute, const std::string& split = "") {
  Strategy strategy{.pp = 2, .pipeline = {.layer_split = split}, .batch = {.micro = 1, .global = 32}};
  strategy.recompute = parse_recompute(recompute, "test");
  return strategy;
}

}  // namespace

TEST(Tune, WhatIsOpen) {
  for (const char* closed : {"none", "selective", "full", "full:2", "full:3,2", "layers:0-7", "attention,norm"})
    EXPECT_FALSE(leaves_open(with(closed))) << closed;
  for (const char* open : {"auto", "best", "rotor", "rotor:20GiB", "revolve:3", "graph"})
    EXPECT_TRUE(leaves_open(with(open))) << open;
  EXPECT_FALSE(leaves_open(with("none", "13,11")));
  EXPECT_TRUE(leaves_open(with("none", "auto")));
  Strategy order = with("none");
  set_option(order, "schedule", "best", "test");
  EXPECT_TRUE(leaves_open(order));
  EXPECT_EQ(find_option("schedule")->get(order), "best");
  set_option(order, "schedule", "file", "test");
  EXPECT_FALSE(leaves_open(order));
}

// What it decided is closed but for schedules, whose runs it gives; tuned again it stays, and the plan is that of both verbs together.
TEST(Tune, ClosesWhatLowerObeys) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("dgx-a100");
  for (const Strategy& open :
       {with("auto", "auto"), with("best"), with("none", "auto"), with("rotor:8GiB"), with("revolve:3"), with("full")}) {
    const std::string name = to_text(open.recompute) + " " + open.pipeline.layer_split;
    const Tuned tuned = std::get<Tuned>(tune(model, cluster, open));
    EXPECT_NE(leaves_open(tuned.strategy), tuned.rows.runs.empty()) << name;
    EXPECT_EQ(std::get<Tuned>(tune(model, cluster, tuned.strategy)).strategy, tuned.strategy) << name;
    EXPECT_EQ(tuned.trades.empty(), to_text(open.recompute) != "best") << name;
    const Lowered one = std::get<Lowered>(lower(model, cluster, tuned.strategy, {}, tuned.rows));
    const Lowered both = std::get<Lowered>(tuned_plan(model, cluster, open));
    EXPECT_EQ(program_hash(one.plan), program_hash(both.plan)) << name;
    EXPECT_EQ(one.strategy, both.strategy) << name;
  }
}

TEST(Tune, LowerTakesNothingOpen) {
  EXPECT_THROW((void)lower(load_model("gpt2-124m"), load_cluster("dgx-a100"), with("auto")), Bug);
}

}  // namespace foreshard::tune_test
