// Full recomputation layer by layer: the words, the plans, and the fewest layers of each stage against all ways to choose them.
#include <random>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/estimate/estimate.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::recompute_layers_test {

namespace {

Model short_gpt(int layers) {
  Model model = load_model("gpt2-355m");
  std::get<Transformer>(model.shape).layers = layers;
  return model;
}

Strategy piped(int pp, int virtual_stages, std::optional<Schedule> schedule, int microbatches) {
  Strategy s{.dp = 1, .pp = pp, .virtual_stages = virtual_stages, .pipeline = {.schedule = schedule}, .batch = {.micro = 2}};
  s.batch.global = s.batch.micro * microbatches;
  return s;
}

Bytes needed(const Lowered& lowered) {
  Bytes most = {};
  for (const Role& role : lowered.plan.roles) most = std::max(most, arena_bytes(role, Space::Device));
  return most + lowered.plan.framework;
}

// As much of the GPUs is reserved that strategies between all and nothing redone fit or do not.
void tighten(Strategy& s, const Model& model, const Cluster& cluster, double share) {
  Strategy all = s, none = s;
  all.recompute = {.kind = RecomputeKind::Full}, none.recompute = {};
  const auto least = static_cast<double>(needed(lowered(model, cluster, all)).value);
  const auto most = static_cast<double>(needed(lowered(model, cluster, none)).value);
  const auto memory = static_cast<double>(gpu_of(cluster, cluster.nodes.front().shape.gpu).memory.value);
  s.device_memory.reserve = 1 - (least + share * (most - least)) / memory;
}

std::vector<int> counts_of(const Recompute& recompute, int stages, int layers) {
  if (recompute == Recompute{}) return std::vector<int>(static_cast<std::size_t>(stages), 0);
  if (!recompute.per_stage.empty()) return recompute.per_stage;
  return std::vector<int>(static_cast<std::size_t>(stages), recompute.layers == 0 ? layers : recompute.layers);
}

}  // namespace

// Every way to redo the first layers of each of three stages with two layers, 27 of them, under three schedules and several
// amounts of memory: what `auto` chooses redoes on no stage more than any that fits, and none that fits is faster.
TEST(RecomputeLayers, AutoEqualsTheBestOfAllCountsPerStage) {
  const Model model = short_gpt(6);
  const Cluster cluster = load_cluster("dgx-a100");
  int differing = 0;
  for (const Strategy& base :
       some_of<Strategy>({piped(3, 1, {}, 6), piped(3, 1, Schedule::GPipe, 4), piped(3, 1, Schedule::ZeroBubbleH1, 6)}, 1))
    for (const double share : some_of<double>({0.15, 0.4, 0.7, 0.95}, 2)) {
      Strategy s = base;
      tighten(s, model, cluster, share);
      s.recompute = parse_recompute("auto", "test");
      const auto chosen = tuned_plan(model, cluster, s);
      ASSERT_TRUE(std::holds_alternative<Lowered>(chosen)) << std::get<Infeasible>(chosen).reason;
      const std::vector<int> counts = counts_of(std::get<Lowered>(chosen).strategy.recompute, 3, 2);
      const double seconds = refine(std::get<Lowered>(chosen), cluster).time.value;
      differing += counts.front() != counts.back();
      int fitting = 0;
      for (int way = 0; way < 27; ++way) {
        s.recompute = {.kind = RecomputeKind::Full, .per_stage = {way % 3, way / 3 % 3, way / 9}};
        const auto other = tuned_plan(model, cluster, s, {.check = false});
        if (std::holds_alternative<Infeasible>(other)) continue;
        ++fitting;
        for (std::size_t stage = 0; stage < 3; ++stage) EXPECT_LE(counts[stage], s.recompute.per_stage[stage]);
        EXPECT_GE(refine(std::get<Lowered>(other), cluster).time.value, seconds * (1 - 1e-12)) << to_text(s.recompute);
      }
      EXPECT_GT(fitting, 0);
    }
  EXPECT_GE(differing, how_many(1, 4));  // the first stage of 1F1B holds more micro-batches than the last
}

// With three chunks of two layers each on a rank: one layer of a rank less does not fit, and the same counts by stage are the
// same memory.
TEST(RecomputeLayers, AutoCountsForTheChunksOfARankTogether) {
  const Model model = short_gpt(12);
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy s = piped(2, 3, Schedule::Interleaved, 6);
  tighten(s, model, cluster, 0.4);
  s.recompute = parse_recompute("auto", "test");
  const auto answer = tuned_plan(model, cluster, s);
  ASSERT_TRUE(std::holds_alternative<Lowered>(answer)) << std::get<Infeasible>(answer).reason;
  const std::vector<int> counts = counts_of(std::get<Lowered>(answer).strategy.recompute, 2, 2);
  int redone = 0;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    redone += counts[rank];
    if (counts[rank] == 0) continue;
    s.recompute = {.kind = RecomputeKind::Full, .per_stage = counts};
    --s.recompute.per_stage[rank];
    EXPECT_TRUE(std::holds_alternative<Infeasible>(tuned_plan(model, cluster, s))) << rank;
  }
  EXPECT_GT(redone, 0);
  s.recompute.per_stage = {counts[0], counts[1], counts[0], counts[1], counts[0], counts[1]};
  const Lowered by_stage = lowered(model, cluster, s);
  for (std::size_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(arena_bytes(by_stage.plan.roles[rank], Space::Device),
              arena_bytes(std::get<Lowered>(answer).plan.roles[rank], Space::Device));
}

// Stage 0 redoes its layers 0 and 1, stage 1 its layer 3 (of the model), stage 2 none: said by counts and by numbers.
TEST(RecomputeLayers, CountsAndNumbersSayTheSamePlan) {
  const Model model = short_gpt(9);
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy s = piped(3, 1, {}, 4);
  s.recompute = parse_recompute("full:2,1,0", "test");
  const Plan counts = lowered(model, cluster, s).plan;
  s.recompute = parse_recompute("layers:0-1,3", "test");
  EXPECT_EQ(program_hash(lowered(model, cluster, s).plan), program_hash(counts));
  s.recompute = parse_recompute("full:3x3", "test");
  const Plan all = lowered(model, cluster, s).plan;
  s.recompute = parse_recompute("full", "test");
  EXPECT_EQ(program_hash(lowered(model, cluster, s).plan), program_hash(all));
  s.recompute = parse_recompute("layers:0-8", "test");
  EXPECT_EQ(program_hash(lowered(model, cluster, s).plan), program_hash(all));
}

// A layer that is redone keeps its input, 2 bytes per element, of all that it keeps otherwise; stage r of 1F1B has p - r in
// flight. So its activations fall by the same bytes for each layer and micro-batch in flight, whatever the other stages do.
TEST(RecomputeLayers, ActivationsFallByTheLayersOfTheirOwnStage) {
  const Model model = short_gpt(8);
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy s = piped(4, 1, {}, 8);
  const auto activations = [&](const char* text) {
    s.recompute = parse_recompute(text, "test");
    std::vector<std::int64_t> bytes;
    for (const Role& role : lowered(model, cluster, s).plan.roles) bytes.push_back(slots(role, Category::Activations).value);
    return bytes;
  };
  const auto none = activations("none"), all = activations("full"), some = activations("full:2,1,0,1");
  const std::int64_t layer = (none[0] - all[0]) / 8;  // two layers, four in flight
  EXPECT_EQ(some[0], none[0] - 2 * 4 * layer);
  EXPECT_EQ(some[1], none[1] - 1 * 3 * layer);
  EXPECT_EQ(some[2], none[2]);
  EXPECT_EQ(some[3], none[3] - 1 * 1 * layer);
}

TEST(RecomputeLayers, AnyCountsMakeASoundPlan) {
  std::mt19937 random(17);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const Cluster cluster = load_cluster("dgx-a100");
  for (int round = 0; round < 40; ++round) {
    Strategy s = piped(number(2, 3), number(1, 2), {}, 6);
    s.zero.stage = number(0, 3), s.dp = 2, s.batch.global *= 2;
    if (s.virtual_stages == 1 && s.zero.stage < 2)
      s.pipeline.schedule =
          std::array{Schedule::OneFOneB, Schedule::GPipe, Schedule::ZeroBubbleH1}[static_cast<std::size_t>(number(0, 2))];
    s.recompute.kind = RecomputeKind::Full;
    const bool named = number(0, 2) == 0, by_rank = number(0, 1) == 0;
    const int stages = s.pp * s.virtual_stages, layers = stages * 2;
    for (int i = 0; i < (named ? layers : by_rank ? s.pp : stages); ++i) {
      if (!named)
        s.recompute.per_stage.push_back(number(0, 2));
      else if (number(0, 1) == 0)
        s.recompute.only.push_back(i);
    }
    const auto defects = check_plan(lowered(short_gpt(layers), cluster, s).plan);
    EXPECT_TRUE(defects.empty()) << to_json(s) << defects.front().rule << defects.front().where << defects.front().what;
  }
}

TEST(RecomputeLayers, StagesThatAreNotThereAreRefused) {
  const Model model = short_gpt(6);
  const Cluster cluster = load_cluster("dgx-a100");
  const auto reason = [&](int pp, int virtual_stages, const char* text) {
    Strategy s = piped(pp, virtual_stages, {}, pp);
    s.recompute = parse_recompute(text, "test");
    return refused(model, cluster, s).reason;
  };
  EXPECT_EQ(reason(2, 1, "full:1,1,1"), "recompute full:1x3 names 3 stages, the strategy has 2");
  EXPECT_EQ(reason(2, 3, "full:1,1,1"), "recompute full:1x3 names 3 stages, the strategy has 6 on 2 ranks");
  EXPECT_EQ(reason(3, 1, "full:1,3,0"), "recompute full:1,3,0 asks for 3 layers of stage 1, which has 2");
  EXPECT_EQ(reason(2, 1, "layers:4-6"), "recompute layers:4-6 names layer 6, the model has layers 0 to 5");
}

// One layer less does not fit, and every layer that is kept saves its forward.
TEST(RecomputeLayers, AutoFillsTheMemoryThatIsFree) {
  const Model model = load_model("llama-2-7b");
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy s;
  s.tp = 2, s.dp = 4, s.zero.stage = 1, s.batch.micro = 8, s.batch.global = 32;
  s.recompute = parse_recompute("auto", "test");
  const auto answer = tuned_plan(model, cluster, s);
  ASSERT_TRUE(std::holds_alternative<Lowered>(answer)) << std::get<Infeasible>(answer).reason;
  const Recompute chosen = std::get<Lowered>(answer).strategy.recompute;
  ASSERT_EQ(chosen.kind, RecomputeKind::Full);
  ASSERT_GT(chosen.layers, 1);
  ASSERT_LT(chosen.layers, 32);
  s.recompute.layers = chosen.layers - 1;
  EXPECT_TRUE(std::holds_alternative<Infeasible>(tuned_plan(model, cluster, s)));
  s.batch.micro = 1;
  s.recompute = parse_recompute("auto", "test");
  EXPECT_EQ(std::get<Lowered>(tuned_plan(model, cluster, s)).strategy.recompute, Recompute{});
}

}  // namespace foreshard::recompute_layers_test
