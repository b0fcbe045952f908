// Laws of lower over generated strategies: what it returns is always sound in the eyes of check_plan, which shares no code
// with it.
#include <random>

#include "core/check/check_plan.h"
#include "strategy/tune/tune.h"
#include "tests/strategy/support_lower.h"

namespace foreshard {

namespace {

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  int operator()(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + (*this)(0, static_cast<int>(choices.size()) - 1));
  }

 private:
  std::mt19937 engine_;
};

Model random_model(Random& random) {
  Transformer t = small_transformer(random.one_of({4, 6, 8, 12}));
  t.tied_embeddings = random(0, 1);
  if (random(0, 2) == 0) {  // Llama
    t.norm = NormKind::RmsNorm, t.activation = ActivationKind::SwiGlu, t.positions = PositionKind::Rope;
    t.kv_heads = 4, t.qkv_bias = t.projection_bias = t.mlp_bias = false;
  } else if (random(0, 3) == 0) {  // BERT
    t.causal = false, t.post_norm = t.embedding_norm = t.mlm_head = t.tied_embeddings = t.lm_head_bias = true;
    t.final_norm = false, t.token_types = 2;
  }
  return {.name = "random", .shape = t};
}

Strategy random_strategy(Random& random) {
  Strategy s{.dp = random.one_of({1, 2, 4}), .tp = random.one_of({1, 2, 4}), .pp = random.one_of({1, 2, 4})};
  s.virtual_stages = s.pp > 1 && random(0, 1) ? random.one_of({1, 2, 3}) : 1;
  s.cp = random(0, 4) == 0 ? 2 : 1;
  s.context = random.one_of({ContextKind::AllGather, ContextKind::Ring, ContextKind::AllToAll});
  s.sequence_parallel = random(0, 1);
  if (s.virtual_stages == 1 && random(0, 1)) s.pipeline.schedule = Schedule::GPipe;
  s.batch.micro = random(1, 2);
  s.batch.global = s.batch.micro * s.dp * s.pp * random(1, 3);
  s.zero.stage = random(0, 3);
  if (s.dp == 4 && random(0, 1)) s.zero.group = 2;
  s.recompute.kind =
      random.one_of({RecomputeKind::None, RecomputeKind::Selective, RecomputeKind::Full, RecomputeKind::Modules});
  if (s.recompute.kind == RecomputeKind::Full) s.recompute.layers = random(0, 1);
  if (s.recompute.kind == RecomputeKind::Modules)
    s.recompute.modules =
        random.one_of<std::vector<std::string>>({{"norm"}, {"activation", "norm"}, {"attention", "mlp"}, {"dropout"}});
  if (random(0, 2) == 0)
    s.recompute = random.one_of<Recompute>({{.kind = RecomputeKind::Revolve, .checkpoints = random(0, 3)},
                                            {.kind = RecomputeKind::Rotor},
                                            {.kind = RecomputeKind::Rotor, .budget = {random(1, 40) * 100'000}},
                                            {.kind = RecomputeKind::Graph, .budget = {random(1, 40) * 100'000}},
                                            {.kind = RecomputeKind::Full, .layers = -1}});
  s.precision = random.one_of({DType::BF16, DType::F32, DType::F64});
  s.dropout = random(0, 1) ? 0.1 : 0;
  if (random(0, 1)) s.attention = AttentionKernel::Unfused;
  s.optimizer.kind = random.one_of({OptimizerKind::Adam, OptimizerKind::Sgd});
  s.optimizer.clip_norm = random(0, 2) == 0 ? 1.0 : 0.0;
  s.optimizer.loss_scale = random.one_of({1.0, 0.0, 1024.0});
  s.communication.bucket = {random.one_of<std::int64_t>({0, 1000, 50'000, 400'000})};
  s.communication.overlap = Overlap{
      .gradients = random(0, 1) == 1, .parameters = random(0, 1) == 1, .p2p = random(0, 1) == 1, .tp = random(0, 1) == 1};
  return s;
}

std::string describe(const Strategy& s, const std::vector<PlanDefect>& defects) {
  std::string text = to_json(s);
  for (const PlanDefect& defect : defects) text += "\n" + defect.rule + " at " + defect.where + ": " + defect.what;
  return text;
}

}  // namespace

TEST(LowerProperties, EveryPlanIsSound) {
  Random random(20261120);
  const Cluster cluster = load_cluster("dgx-a100-x16");
  int plans = 0, scheduled = 0;
  for (int round = 0; round < 400; ++round) {
    const Model model = random_model(random);
    const Strategy strategy = random_strategy(random);
    const auto answer = tuned_plan(model, cluster, strategy);
    if (!std::holds_alternative<Lowered>(answer)) continue;
    ++plans;
    scheduled += strategy.recompute.kind > RecomputeKind::Modules;
    const auto defects = check_plan(std::get<Lowered>(answer).plan);
    ASSERT_TRUE(defects.empty()) << describe(std::get<Lowered>(answer).strategy, defects);
  }
  EXPECT_GT(plans, 150);  // most of what is drawn can be cut so
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
  Random random(7);
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
  Random random(23);
  int lowered_plans = 0;
  for (int round = 0; round < 60; ++round) {
    const Model model = random_model(random);
    Strategy s = random_strategy(random);
    const int between = s.pp * s.virtual_stages - 2, layers = std::get<Transformer>(model.shape).layers;
    if (between < 1 || layers % between != 0) continue;
    s.pipeline.layer_split = "0," + std::to_string(layers / between) + "x" + std::to_string(between) + ",0";
    const auto answer = tuned_plan(model, cluster, s, {.ignore_memory = true});
    const auto* plan = std::get_if<Lowered>(&answer);
    if (!plan) continue;
    ++lowered_plans;
    const std::vector<PlanDefect> defects = check_plan(plan->plan);
    EXPECT_TRUE(defects.empty()) << describe(s, defects);
  }
  EXPECT_GE(lowered_plans, 5);
}

}  // namespace foreshard
