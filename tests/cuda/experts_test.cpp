// Mixtures of experts on a runtime that is not a GPU: every split trains as one rank does, and as the host.
#include <gtest/gtest.h>

#include "tests/cuda/fake_training.h"
#include "tests/exec/mixture_models.h"

namespace foreshard::gpu {
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

Execution on_gpus(const Plan& plan) {
  FakeRuntime runtime;
  Execution done = run(plan, on_fake(runtime, 2));
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
    for (const Strategy& strategy : splits) {
      const Difference apart = difference(on_gpus(plan_of(model, strategy)), host);
      EXPECT_LE(std::max(apart.loss, apart.values), 2e-5) << name_of(strategy) << ": " << apart.worst;
    }
  }
}

}  // namespace
}  // namespace foreshard::gpu
