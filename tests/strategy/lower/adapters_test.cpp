// Plans of models with low-rank adapters: bytes of every kind of state on every rank, and what check_plan says of plans that touch frozen tensors.
#include <algorithm>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::adapters_test {

namespace {

Plan tuned(Strategy s) {
  s.optimizer.lora.rank = 16;
  s.batch.seq = 512;
  return lowered("llama-2-7b", "dgx-a100", s).plan;
}

std::int64_t bytes_of(const Role& role, Category category) { return resident(role)[static_cast<std::size_t>(category)].value; }

std::string defects(const Plan& plan) {
  std::string all;
  for (const PlanDefect& defect : check_plan(plan)) all += defect.rule + " " + defect.where + " " + defect.what + "\n";
  return all;
}
bool has_rule(const Plan& plan, const std::string& rule) {
  return std::ranges::any_of(check_plan(plan), [&](const PlanDefect& defect) { return defect.rule == rule; });
}

// Llama 2 7B: h 4096, 32 layers, 65 norms. On each of t tensor ranks the norms are whole; of an adapter of a column-parallel product A is whole and B
// is cut, of a row-parallel one A is cut and B whole. d replicas: ZeRO 1 shards states of adapters, ZeRO 3 also all parameters and gradients of adapters.
TEST(LoweredAdapters, StatesAreThoseOfTheAdapters) {
  const std::int64_t h = 4096, r = 16, all = parameter_count(load_model("llama-2-7b")), norms = 65 * h;
  for (const int tp : {1, 2, 4})
    for (const int zero : {0, 1, 3}) {
      const std::int64_t t = tp, d = 8 / tp;
      const Plan plan = tuned(
          {.dp = static_cast<int>(d), .tp = tp, .sequence_parallel = tp > 1, .batch = {.micro = 1}, .zero = {.stage = zero}});
      const std::int64_t base = (all - norms) / t + norms, adapters = 32 * r * ((h + 3 * h / t) + (h / t + h));
      const Role& rank = plan.roles.at(0);
      const std::int64_t slack = 16 * 40 * d;  // padding of units to whole shards
      EXPECT_NEAR(bytes_of(rank, Category::Parameters), 2 * (base + adapters) / (zero == 3 ? d : 1), slack)
          << tp << " " << zero;
      EXPECT_NEAR(bytes_of(rank, Category::Gradients), 2 * adapters / (zero == 3 ? d : 1), slack) << tp << " " << zero;
      EXPECT_NEAR(bytes_of(rank, Category::Optimizer), 12 * adapters / (zero > 0 ? d : 1), 6 * slack) << tp << " " << zero;
      EXPECT_EQ(defects(plan), "");
    }
}

TEST(LoweredAdapters, OnlyTheirGradientsAreSummed) {
  const Plan plan = tuned({.dp = 8, .batch = {.micro = 1}});
  std::int64_t summed = 0, updated = 0;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions) {
      if (const auto* what = std::get_if<Collective>(&run.what)) summed += what->bytes.value;
      if (const auto* what = std::get_if<Compute>(&run.what); what && is_step(what->op)) updated += what->shapes[0].dims[0];
    }
  EXPECT_EQ(updated, 12'582'912);
  EXPECT_EQ(summed, 2 * 12'582'912);
}

// Below the first adapter nothing is sent back, also where a stage has nothing else.
TEST(LoweredAdapters, AStageWithTheEmbeddingAloneGetsNoGradient) {
  const Plan plan = tuned({.dp = 1, .pp = 4, .pipeline = {.layer_split = "0,11,11,10"}, .batch = {.micro = 1, .global = 8}});
  EXPECT_EQ(defects(plan), "");
  for (const Action& action : plan.roles[0].actions)
    if (!action.does.empty() && action.does[0].work == Work::B)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions)
        EXPECT_TRUE(std::holds_alternative<Mark>(run.what)) << run.name;
}

TEST(LoweredAdapters, PlantedMistakesAreNamed) {
  const Plan plan = tuned({.dp = 4, .tp = 2, .batch = {.micro = 1}});
  ASSERT_EQ(defects(plan), "");
  Plan written = plan;  // an adapter's tensor counts as frozen
  for (Tensor& tensor : written.tensors)
    if (tensor.name == "layers.0.qkv_lora_a.weight") tensor.frozen = true;
  EXPECT_TRUE(has_rule(written, "frozen-tensor"));
  Plan unsummed = plan;  // A of a column-parallel product has a partial sum on each tensor rank
  for (Segment& segment : unsummed.segments)
    for (Instruction& run : segment.instructions)
      if (run.name == "sum over tp") run.what = Mark{}, run.reads.clear(), run.writes.clear();
  EXPECT_TRUE(has_rule(unsummed, "partial-sum"));
  Plan bare = plan;  // the sum behind the output projection and its adapter
  for (Segment& segment : bare.segments)
    for (Instruction& run : segment.instructions)
      if (run.name == "projection_reduce") run.what = Mark{}, run.reads.clear(), run.writes.clear();
  EXPECT_TRUE(has_rule(bare, "partial-sum"));
}

TEST(LoweredAdapters, WhatIsRefusedHasAReason) {
  const auto reason = [](const char* model, Strategy s) {
    s.batch.seq = 512;
    const auto answer = resolve(load_model(model), load_cluster("dgx-a100"), s);
    const auto* refused = std::get_if<Infeasible>(&answer);
    return refused ? refused->reason : std::string("nothing");
  };
  const Adapters lora = {.rank = 8};
  EXPECT_EQ(reason("qwen3-30b-a3b", {.optimizer = {.lora = lora}}),
            "qwen3-30b-a3b has experts: adapters are for dense transformers");
  EXPECT_EQ(reason("resnet-50", {.optimizer = {.lora = lora}}),
            "resnet-50 is a layer list: adapters are for linear layers of transformers");
  EXPECT_EQ(reason("llama-2-7b", {.optimizer = {.lora = lora}, .framework = "torchtitan"}),
            "framework torchtitan is known as it trains all parameters: what it allocates for adapters is not");
  EXPECT_EQ(reason("llama-2-7b", {.optimizer = {.lora = lora}, .communication = {.asynchronous = true}}),
            "an asynchronous server sends all parameters, not those of adapters alone");
  EXPECT_EQ(reason("llama-2-7b", {.batch = {.packed = 1024}}), "packed sequences of 1024 tokens are longer than a row of 512");
  EXPECT_EQ(reason("llama-2-7b", {.cp = 2, .batch = {.packed = 256}}), "packed sequences are not cut by cp 2");
  EXPECT_EQ(reason("llama-2-7b", {.batch = {.packed = 256}, .optimizer = {.lora = lora}}), "nothing");
}

}  // namespace

}  // namespace foreshard::adapters_test
