// Mixtures of experts on a runtime that is not a GPU: every split trains as one rank does, and as the host.
#include <gtest/gtest.h>

#include "tests/cuda/fake_training.h"
#include "tests/exec/mixture_models.h"
#include "tests/how_many.h"

namespace foreshard::gpu::experts_test {
namespace {

Model small_mixture(const Experts& experts) {
  const ModernModel which{"mixture", [&](Transformer& t) { t.layers = 2, t.block.experts = experts; }};
  return modern_model(which);
}

Plan plan_of(const Model& model, Strategy strategy) {
  strategy.batch.micro = 1;
  strategy.experts.load = {.kind = ExpertLoad::Kind::Worst};
  return lowered(model, in_single(strategy));
}

Execution on_gpus(const Plan& plan, int steps = 2, GpuRuns runs = {}) {
  FakeRuntime runtime;
  ExecuteOptions options = fake_training(steps);
  options.devices = ranks_on(runtime, runs);
  Execution done = run(plan, options);
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  return done;
}

TEST(CudaExperts, EverySplitTrainsAsTheHost) {
  const Experts all[] = {{.count = 8, .chosen = 2, .width = 24, .renormalised = true, .auxiliary_loss = 0.5, .z_loss = 0.25},
                         {.count = 8,
                          .chosen = 2,
                          .width = 24,
                          .shared_width = 16,
                          .score = RouterScore::Sigmoid,
                          .renormalised = true,
                          .scale = 2.5,
                          .groups = 4,
                          .chosen_groups = 2,
                          .best_of_group = 2,
                          .correction_bias = true,
                          .bias_speed = 0.05}};
  for (const Experts& experts : all) {
    const Model model = small_mixture(experts);
    const Execution host = run(plan_of(model, {}), fake_training(2));
    std::vector<Strategy> splits = {{.dp = 4, .experts = {.ep = 2}, .zero = {.stage = 1}}};
    if (experts.correction_bias)
      splits.push_back({.dp = 2, .tp = 2, .experts = {.ep = 2, .etp = 2}, .sequence_parallel = true});
    else
      for (const Dispatcher dispatcher : {Dispatcher::AllGather, Dispatcher::OncePerRank})
        splits.push_back({.dp = 2, .experts = {.ep = 2, .dispatcher = dispatcher}});
    splits.push_back({.dp = 2, .pp = 2, .experts = {.ep = 2}, .pipeline = {.schedule = Schedule::OneFOneBCells}});
    splits.back().communication.overlap = Overlap{.tp = true};
    for (const Strategy& strategy : some_of(splits, 1)) {
      const Execution done = on_gpus(plan_of(model, strategy));
      const Difference apart = difference(done, host);
      EXPECT_LE(std::max(apart.loss, apart.values), 2e-5) << name_of(strategy) << ": " << apart.worst;
      for (std::size_t i = 0; i < done.steps.size(); ++i)
        EXPECT_EQ(done.steps[i].experts, host.steps[i].experts) << name_of(strategy) << ", step " << i;
    }
  }
}

// Four steps, of which the last two are CUDA graphs. What has no room is dropped on the same ranks; a recomputation counts nothing.
TEST(CudaExperts, AreCountedAsOnTheHost) {
  const Model model = small_mixture({.count = 8, .chosen = 2, .width = 24, .renormalised = true});
  for (const bool once : some_of<bool>({true, false}, 1)) {
    Strategy strategy{.dp = 2, .experts = {.ep = 2, .capacity = 0.5}, .recompute = {.kind = RecomputeKind::Full}};
    if (once) strategy.experts.dispatcher = Dispatcher::AllGather;
    const Plan plan = plan_of(model, strategy);
    const Execution host = run(plan, fake_training(4)), done = on_gpus(plan, 4, {.graphs = true});
    ASSERT_EQ(done.steps.size(), 4U);
    for (std::size_t i = 0; i < done.steps.size(); ++i) {
      EXPECT_EQ(done.steps[i].experts, host.steps[i].experts) << "step " << i;
      EXPECT_EQ(done.steps[i].experts.choices(), 8 * 16 * 2 * 2) << "step " << i;  // samples, positions, chosen experts, layers
      EXPECT_GT(done.steps[i].experts.dropped(), 0) << "step " << i;
    }
    EXPECT_EQ(done.routers, host.routers);
  }
}

}  // namespace
}  // namespace foreshard::gpu::experts_test
