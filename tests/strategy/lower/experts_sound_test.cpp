// Plans of mixtures that check_plan once called unsound.
#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/strategy/strategy_options.h"
#include "strategy/tune/tune.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::experts_sound_test {

// Four layers, 8 experts, two of them chosen.
static Model mixture() {
  Transformer t = small_transformer(4);
  t.norm = NormKind::RmsNorm, t.activation = ActivationKind::SwiGlu, t.positions = PositionKind::Rope;
  t.qkv_bias = t.projection_bias = t.mlp_bias = t.tied_embeddings = false;
  t.block.experts = {.count = 8, .chosen = 2, .width = 32, .shared_width = 64};
  return {.name = "mixture", .shape = t};
}

// Expert groups fold over tensor, context and data ranks; or two ranks share each expert.
static Strategy folded() {
  return {
      .dp = 4, .tp = 2, .cp = 2, .pp = 2, .experts = {.ep = 8}, .sequence_parallel = true, .batch = {.micro = 1, .global = 8}};
}
static Strategy shared() {
  return {
      .dp = 4, .tp = 2, .pp = 2, .experts = {.ep = 2, .etp = 2}, .sequence_parallel = true, .batch = {.micro = 1, .global = 8}};
}

// The norm that a dynamic loss scale needs is of all gradients; each optimizer's step reads it beside its own gradient, which is cut over
// other axes for experts than for the rest.
TEST(SoundExperts, WithADynamicLossScale) {
  for (Strategy strategy : {folded(), shared()})
    for (const int zero : {0, 1, 2, 3})
      for (const double clip : {0.0, 1.0}) {
        strategy.zero.stage = zero, strategy.pp = zero > 1 ? 1 : 2;
        strategy.optimizer.loss_scale = 0, strategy.optimizer.clip_norm = clip;
        const Lowered made = std::get<Lowered>(
            tuned_plan(mixture(), load_cluster("dgx-a100-x4"), strategy, {.ignore_memory = true, .check = false}));
        const auto defects = check_plan(made.plan);
        EXPECT_TRUE(defects.empty()) << zero << " " << clip << " " << defects[0].rule << " " << defects[0].where;
      }
}

// The top elements of gradients that are partial sums over the ranks that cut an expert: each rank adds up those of all.
TEST(SoundExperts, WithSparseGradients) {
  for (const int ep : {1, 2})
    for (const int etp : {1, 2}) {
      Strategy strategy{.dp = 4, .experts = {.ep = ep, .etp = etp}, .batch = {.micro = 1, .global = 8}};
      set_option(strategy, "compress_gradients", "dgc:0.1", "test");
      const Lowered made =
          std::get<Lowered>(tuned_plan(mixture(), load_cluster("dgx-a100"), strategy, {.ignore_memory = true, .check = false}));
      const auto defects = check_plan(made.plan);
      EXPECT_TRUE(defects.empty()) << ep << " " << etp << " " << defects[0].rule << " " << defects[0].where;
    }
}

}  // namespace foreshard::experts_sound_test
