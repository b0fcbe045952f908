// What a verb is estimated to need, against what it was measured to need, and the refusals.
#include "cli/job/effort.h"

#include <gtest/gtest.h>

#include "cli/parts/search_run.h"
#include "core/cluster_file/cluster_file.h"
#include "tests/cli/run_line.h"

namespace foreshard::effort_test {

namespace {

struct Measured {  // by /usr/bin/time: user seconds and the largest resident set, less the 38 MB of any job
  const char* name = "";
  const char* model = "gpt3-175b";
  const char* cluster = "dgx-a100-x16";
  Strategy strategy = {};
  EffortOptions work = {};
  double seconds = 0, megabytes = 0;
};

EffortOptions play(Granularity granularity, Folding folding = Folding::Full) {
  return {.kind = WorkKind::Simulate, .granularity = granularity, .folding = folding};
}

std::vector<Measured> measured() {
  const Strategy small = {.dp = 8, .batch = {.global = 320'000, .seq = 256}};
  const Strategy deep = {.dp = 1, .tp = 8, .pp = 16, .batch = {.global = 8192, .seq = 2048}};
  Strategy wide = deep;
  wide.dp = 8, wide.batch.global = 512;
  return {{"small", "gpt2-124m", "dgx-a100", small, play(Granularity::Layer), 0.86, 907},
          {"layer", "gpt3-175b", "dgx-a100-x16", deep, play(Granularity::Layer), 6.4, 595},
          {"op", "gpt3-175b", "dgx-a100-x16", deep, play(Granularity::Op), 14.1, 1467},
          {"stage", "gpt3-175b", "dgx-a100-x16", deep, play(Granularity::Stage), 2.4, 229},
          {"each rank", "gpt3-175b", "dgx-a100-x128", wide, play(Granularity::Layer, Folding::None), 2.2, 305},
          {"lower", "gpt3-175b", "dgx-a100-x16", deep, {.kind = WorkKind::Lower}, 0.07, 41}};
}

}  // namespace

TEST(Effort, IsOfTheSizeThatWasMeasured) {
  for (const Measured& m : measured()) {
    const Job job = {.model = load_model(m.model), .cluster = load_cluster(m.cluster), .strategy = m.strategy};
    const Effort effort = effort_of(job, m.work);
    EXPECT_GT(effort.time.value, m.seconds / 4) << m.name;
    EXPECT_LT(effort.time.value, m.seconds * 4) << m.name;
    EXPECT_GT(static_cast<double>(effort.memory.value), m.megabytes * 1e6 / 4) << m.name;
    EXPECT_LT(static_cast<double>(effort.memory.value), m.megabytes * 1e6 * 4) << m.name;
  }
}

// User seconds of searches with their default options.
TEST(Effort, OfASearchKnowsModelBatchAndGpus) {
  struct Search {
    std::string model, cluster;
    std::int64_t batch;
    double seconds;
  };
  for (const Search& m : {Search{"gpt3-175b", "dgx-a100-x64", 1536, 34.1}, Search{"gpt3-175b", "dgx-a100-x64", 512, 21.3},
                          Search{"gpt3-175b", "dgx-a100-x16", 1536, 66.6}, Search{"llama-2-13b", "dgx-a100-x64", 1536, 10.7},
                          Search{"llama-2-13b", "dgx-a100-x4", 512, 10.7}, Search{"gpt2-124m", "dgx-a100-x64", 1536, 2.0},
                          Search{"gpt2-124m", "dgx-a100-x1024", 8192, 4.0}, Search{"gpt2-124m", "dgx-a100", 16, 0.5}}) {
    const Job job = {
        .model = load_model(m.model), .cluster = load_cluster(m.cluster), .strategy = {.batch = {.global = m.batch}}};
    const double seconds = effort_of(job, {.kind = WorkKind::Search}).time.value;
    EXPECT_GT(seconds, m.seconds / 4) << m.model << m.cluster;
    EXPECT_LT(seconds, m.seconds * 4) << m.model << m.cluster;
  }
}

TEST(Effort, GrowsWithTheWork) {
  const auto of = [](std::int64_t batch, int nodes, EffortOptions work) {
    const Job job = {.model = load_model("gpt2-124m"),
                     .cluster = with_nodes(load_cluster("dgx-a100"), nodes),
                     .strategy = {.batch = {.global = batch, .seq = 256}}};
    return effort_of(job, work).time.value;
  };
  EXPECT_EQ(of(64, 1, play(Granularity::Op)), 0) << "little is not estimated";
  EXPECT_NEAR(of(3'200'000, 1, play(Granularity::Op)) / of(1'600'000, 1, play(Granularity::Op)), 2, 0.01);
  EXPECT_GT(of(1'600'000, 1, play(Granularity::Op)), of(1'600'000, 1, play(Granularity::Stage)));
  EXPECT_GT(of(1 << 17, 2048, play(Granularity::Stage, Folding::None)), 100 * of(1 << 17, 2048, play(Granularity::Stage)));
  EXPECT_GT(of(1 << 20, 100'000, {.kind = WorkKind::Search}), 50 * of(1 << 20, 8, {.kind = WorkKind::Search}));
}

// A million micro-batches, many ranks one by one, a search over a million GPUs. Each line has something else wrong that is found right
// after, so a verb that does not refuse ends at once, too.
TEST(Effort, WhatCannotEndHereIsRefusedWithItsSize) {
  const std::string job = "--model gpt2-124m --seq 256 ", no_such_layer = " --recompute layers:500-600";
  const auto refused = [&](const std::string& line, const std::string& size, const std::string& instead) {
    const RanLine ran = run_line(line);
    EXPECT_EQ(ran.code, ExitCode::WrongInput) << line << ran.out.substr(0, 200);
    EXPECT_NE(ran.err.find(size), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(" would take about "), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(instead), std::string::npos) << ran.err;
    EXPECT_TRUE(ran.err.ends_with(", or --force\n")) << ran.err;
  };
  refused("simulate " + job + "--cluster dgx-a100 --granularity op --global-batch 8000000" + no_such_layer,
          "1,000,000 micro-batches on 1 pipeline rank: ", "a smaller --global-batch");
  refused("lower " + job + "--cluster dgx-a100-x2 --pp 12 --gpus 12 --global-batch 825000" + no_such_layer,
          "825,000 micro-batches on 12 pipeline ranks", "a smaller --global-batch");
  refused("simulate " + job + "--cluster dgx-a100-x40000 --global-batch 320000 --folding none" + no_such_layer,
          "320,000 ranks each by itself", "--folding full");
  refused("search " + job + "--cluster dgx-a100-x131072 --global-batch 1048576 --rows 0", "a search over 1,048,576 GPUs",
          "fewer --nodes");
  refused("search " + job + "--cluster dgx-a100 --cluster dgx-h100-x131072 --global-batch 1048576 --top 99999",
          "a search over 1,048,576 GPUs", "fewer --nodes");
  refused("sweep " + job + "--cluster dgx-a100 --global-batch 1048576 --vary nodes=131072 --top 99999",
          "a search over 1,048,576 GPUs", "fewer --nodes");
  refused("partition " + job + "--cluster dgx-a100 --global-batch 999999937 --max-tp 1", "999,999,937 sequences per step",
          "--global-batch");
  refused("search " + job + "--cluster dgx-a100 --global-batch 1000000000 --rows 0", "1,000,000,000 sequences per step",
          "--global-batch");
}

// What it then does is not long: there is no such layer.
TEST(Effort, ForceStartsIt) {
  const std::string line =
      "simulate --model llama-3-70b --cluster dgx-a100 --tp 8 --seq 256 --global-batch 900000 --recompute layers:500-600";
  const RanLine refused = run_line(line), forced = run_line(line + " --force");
  EXPECT_EQ(refused.code, ExitCode::WrongInput);
  EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  EXPECT_EQ(forced.code, ExitCode::Infeasible);
  EXPECT_NE(forced.err.find("names layer 600"), std::string::npos) << forced.err;
}

// Memory is planned for the layers of a rank together, in time that grows with their square: 65,536 layers would take an hour.
TEST(Effort, ManyLayersAreRefused) {
  const std::string job = "simulate --model gpt2-124m --cluster dgx-a100 --global-batch 8 --seq 128 --set model.n_layer=";
  const RanLine refused = run_line(job + "65536");
  EXPECT_EQ(refused.code, ExitCode::WrongInput);
  EXPECT_NE(refused.err.find("65,536 layers on a GPU"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("more --pp"), std::string::npos) << refused.err;
}

}  // namespace foreshard::effort_test
