// Where gradients lie until the update: places of gradients that are away, embeddings that two stages share, experts that no sum waits for.
#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "strategy/resolve/resolve.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::gradient_places_test {
namespace {

Plan plan_of(const Model& model, const Strategy& strategy) { return lowered(model, load_cluster("dgx-a100"), strategy).plan; }
Model tied() {
  Transformer model = small_transformer(4);
  model.tied_embeddings = true;
  return {.name = "tied", .shape = model};
}

std::string describe_defects(const Plan& plan) {
  std::string text;
  for (const PlanDefect& defect : check_plan(plan)) text += defect.rule + " at " + defect.where + ": " + defect.what + "\n";
  return text;
}

int copies_named(const Plan& plan, const std::string& name) {
  int count = 0;
  for (const Role& role : plan.roles)
    for (const Action& action : role.actions)
      count +=
          static_cast<int>(std::ranges::count(plan.segments[action.segment.index()].instructions, name, &Instruction::name));
  return count;
}

}  // namespace

// Every micro-batch but the first copies in what those before it have left, under every way of recomputation.
TEST(GradientPlaces, GradientsThatAreAwayComeBackForEveryMicrobatch) {
  Strategy s{.dp = 1, .batch = {.micro = 1, .global = 3}};
  s.offload.gradients = Space::PinnedHost;
  const int plain = copies_named(plan_of(tied(), s), "bring gradients");
  EXPECT_EQ(plain % 2, 0);  // of the second and the third
  EXPECT_GT(plain, 0);
  for (const char* recompute : {"full", "rotor", "graph", "revolve:2"}) {
    s.recompute = parse_recompute(recompute, "test");
    const Plan plan = plan_of(tied(), s);
    EXPECT_EQ(copies_named(plan, "bring gradients"), plain) << recompute;
    EXPECT_TRUE(check_plan(plan).empty()) << recompute;
  }
}

// Both ends of the model are on one rank: the head adds to gradients that the embedding's stage keeps on the device.
TEST(GradientPlaces, ATiedEmbeddingOfTwoStagesOnOneRankStaysOnTheDevice) {
  for (const bool parameters : {false, true}) {
    Strategy s{.dp = 1, .pp = 2, .batch = {.micro = 1, .global = 4}};
    s.pipeline.schedule = Schedule::Chimera;
    (parameters ? s.offload.parameters : s.offload.gradients) = Space::PinnedHost;
    EXPECT_EQ(describe_defects(plan_of(tied(), s)), "");
  }
}

// Experts of which a rank has no replica are not summed: their update beside the next forward waits for the backward itself.
TEST(GradientPlaces, ExpertsWithoutReplicasAreUpdatedAfterTheBackward) {
  Transformer mixture = std::get<Transformer>(llama(2, 64, 64, 8, 8, 250).shape);
  mixture.block.experts = {.count = 4, .chosen = 2, .width = 32};
  Strategy s{.dp = 2, .experts = {.ep = 2}, .batch = {.micro = 1, .global = 4}};
  s.communication.order = SumOrder::Priority;
  EXPECT_EQ(describe_defects(plan_of({.name = "mixture", .shape = mixture}, s)), "");
}

// Over the replicas of both stages at once; with sharded states each rank's shard over both stages.
TEST(GradientPlaces, ATiedEmbeddingIsSummedOnce) {
  const auto sums_of_embedding = [](const Plan& plan) {
    std::vector<std::size_t> members;
    for (const Group& group : plan.groups)
      if (group.name == "tied embeddings") members.push_back(group.over.size());
    return members;
  };
  Strategy s{.dp = 2, .pp = 2, .batch = {.micro = 1, .global = 4}};
  EXPECT_EQ(sums_of_embedding(plan_of(tied(), s)), std::vector<std::size_t>{1});
  s.zero.stage = 1;
  EXPECT_EQ(sums_of_embedding(plan_of(tied(), s)), std::vector<std::size_t>{0});
}

// Stages with equal degrees, one by one, are the same strategy as common degrees, and the same plan.
TEST(GradientPlaces, OneStrategyInTwoFormsIsOnePlan) {
  Strategy common{.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1, .global = 8}}, stages{.batch = {.micro = 1, .global = 8}};
  common.pipeline.layer_split = "1,3";
  stages.stages = {{.layers = 1, .dp = 2, .tp = 2}, {.layers = 3, .dp = 2, .tp = 2}};
  EXPECT_EQ(program_hash(plan_of(tied(), common)), program_hash(plan_of(tied(), with_common_degrees(stages))));
  EXPECT_TRUE(with_common_degrees(stages).stages.empty());
  stages.stages = {{.layers = 2, .dp = 2, .tp = 2}, {.layers = 3, .dp = 2, .tp = 2}};
  EXPECT_NE(refused(tied(), load_cluster("dgx-a100"), with_common_degrees(stages)).reason.find("layer"), std::string::npos);
  stages.stages = {{.layers = 2, .dp = 2, .tp = 2}, {.layers = 2, .dp = 1, .tp = 2}};
  EXPECT_EQ(with_common_degrees(stages), stages);
}

}  // namespace foreshard::gradient_places_test
