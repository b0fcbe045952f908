// OperatorTraits of lower over generated strategies: what it returns is always sound in the eyes of check_plan, which shares no code
// with it.
#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"
#include "tests/strategy/support_random_strategy.h"

namespace foreshard::lower_property_test {

TEST(LowerProperties, EveryPlanIsSound) {
  RandomChoice random(20261120);
  const Cluster cluster = load_cluster("dgx-a100-x16");
  int plans = 0, scheduled = 0;
  for (int round = 0; round < how_many(150, 400); ++round) {
    const Model model = random_model(random);
    Strategy strategy = random_strategy(random);
    strategy.communication.transfers = round % 2 == 0 ? Transfers::Whole : Transfers::Split;
    const auto answer = tuned_plan(model, cluster, strategy, {.check = false});
    if (!std::holds_alternative<Lowered>(answer)) continue;
    ++plans;
    scheduled += strategy.recompute.kind > RecomputeKind::Modules;
    const auto defects = check_plan(std::get<Lowered>(answer).plan);
    ASSERT_TRUE(defects.empty()) << describe(std::get<Lowered>(answer).strategy, defects);
  }
  EXPECT_GT(plans, how_many(55, 150));  // most of what is drawn can be cut so
  EXPECT_GT(scheduled, 20);
}

// Fewer replicas help where one replica has room; where it has none --dp 1 would be what was asked for.
TEST(LowerProperties, FewerReplicasAreARemedyOnlyWhereOneHasRoom) {
  const Model model = load_model("gpt2-124m");
  const Infeasible many = refused(model, load_cluster("dgx-a100"), {.dp = 8, .tp = 2, .pp = 2});
  EXPECT_EQ(many.would_help.front(), "--dp 2");
  const Infeasible large = refused(model, load_cluster("dgx-a100"), {.dp = 1, .tp = 4, .pp = 4});
  EXPECT_EQ(large.would_help, (std::vector<std::string>{"a smaller --tp, --cp or --pp", "a larger cluster"}));
}

TEST(LowerProperties, VirtualStagesNeedAPipeline) {
  const Model model = load_model("gpt2-124m");
  const Infeasible why = refused(model, load_cluster("dgx-a100"), {.pp = 1, .virtual_stages = 2, .batch = {.global = 16}});
  EXPECT_EQ(why.reason, "virtual stages need a pipeline of at least 2 ranks: found 2 virtual stages with pp 1");
  EXPECT_EQ(why.would_help, (std::vector<std::string>{"--virtual-stages 1", "--pp 2"}));
}

TEST(LowerProperties, SameInputSamePlan) {
  RandomChoice random(7);
  const Cluster cluster = load_cluster("dgx-a100-x16");
  for (int round = 0; round < 20; ++round) {
    const Model model = random_model(random);
    const Strategy strategy = random_strategy(random);
    const auto first = tuned_plan(model, cluster, strategy), second = tuned_plan(model, cluster, strategy);
    ASSERT_EQ(first.index(), second.index());
    if (!std::holds_alternative<Lowered>(first)) continue;
    EXPECT_EQ(std::get<Lowered>(first).plan, std::get<Lowered>(second).plan);
  }
}

// Costs stand beside the program: another GPU of the same memory gives the same program.
TEST(LowerProperties, CostsDoNotChangeTheProgram) {
  const Model model = load_model("gpt2-124m");
  Cluster cluster = load_cluster("dgx-a100");
  const Strategy strategy{.tp = 2, .pp = 2, .batch = {.global = 16}};
  const Plan plan = lowered(model, cluster, strategy).plan;
  cluster.gpus.front().memory_bandwidth = cluster.gpus.front().memory_bandwidth * 0.5;
  const Plan slower = lowered(model, cluster, strategy).plan;
  EXPECT_EQ(program_hash(plan), program_hash(slower));
  EXPECT_NE(plan.costs, slower.costs);
}

// The program does not grow with the data-parallel size, nor the segments with the micro-batches.
TEST(LowerProperties, SizeIsIndependentOfDataParallelism) {
  const auto size = [](int nodes, std::int64_t batch) {
    const Plan plan =
        lowered("gpt2-124m", "dgx-a100-x" + std::to_string(nodes), {.tp = 2, .pp = 4, .batch = {.global = batch}}).plan;
    std::size_t instructions = 0;
    for (const Segment& segment : plan.segments) instructions += segment.instructions.size();
    return std::pair{plan.roles.size(), instructions};
  };
  EXPECT_EQ(size(2, 2 * 8), size(16, 16 * 8));
  EXPECT_EQ(size(2, 2 * 8), size(2, 2 * 32));
}

// The embedding alone scatters its rows on the tensor stream and computes nothing after it: the next micro-batch waits.
TEST(LowerProperties, AnEmbeddingAloneWaitsForItsScatter) {
  Strategy s{
      .tp = 2, .pp = 4, .sequence_parallel = true, .pipeline = {.layer_split = "0,16x2,0"}, .batch = {.micro = 1, .global = 8}};
  s.dp = 1, s.communication.overlap = Overlap{.tp = true};
  const auto defects = check_plan(lowered("llama-2-7b", "dgx-a100", s).plan);
  EXPECT_TRUE(defects.empty()) << describe(s, defects);
}

// The embedding alone on the first stage, the head alone on the last one (Megatron's standalone embedding stage).
TEST(LowerProperties, StagesOfTheEndsAloneAreSound) {
  const Cluster cluster = load_cluster("dgx-a100-x8");
  RandomChoice random(23);
  int lowered_plans = 0;
  for (int round = 0; round < 60; ++round) {
    const Model model = random_model(random);
    Strategy s = random_strategy(random);
    const int between = s.pp * s.virtual_stages - 2, layers = std::get<Transformer>(model.shape).layers;
    if (between < 1 || layers % between != 0) continue;
    s.pipeline.layer_split = "0," + std::to_string(layers / between) + "x" + std::to_string(between) + ",0";
    const auto answer = tuned_plan(model, cluster, s, {.ignore_memory = true, .check = false});
    const auto* plan = std::get_if<Lowered>(&answer);
    if (!plan) continue;
    ++lowered_plans;
    const std::vector<PlanDefect> defects = check_plan(plan->plan);
    EXPECT_TRUE(defects.empty()) << describe(s, defects);
  }
  EXPECT_GE(lowered_plans, 5);
}

// Operators that no plan can say are refused, not lowered to a plan that is not sound.
TEST(LowerProperties, ModelsWiderThanPlansAreRefused) {
  Model model = load_model("olmo-2-7b");
  std::get<Transformer>(model.shape).hidden = 4'096'000, std::get<Transformer>(model.shape).head_dim = 128'000;
  const auto answer = tuned_plan(model, load_cluster("dgx-h100"), {.batch = {.seq = 256}}, {.ignore_memory = true});
  ASSERT_TRUE(std::holds_alternative<Infeasible>(answer));
  EXPECT_NE(std::get<Infeasible>(answer).reason.find("more than 2^50 elements or bytes"), std::string::npos);
}

}  // namespace foreshard::lower_property_test
