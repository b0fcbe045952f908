// Models with the operators of today: split in every way they train as on one device, in double precision, and the loss falls.
#include "tests/exec/modern_models.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/check/check_plan.h"
#include "core/graph/op_graph.h"
#include "tests/exec/training.h"

namespace foreshard::modern_models_test {
namespace {

constexpr double kTolerance = 1e-12;

Strategy tensor_parallel(int tp) {
  return {.dp = 2, .tp = tp, .sequence_parallel = true, .batch = {.micro = 1}, .zero = {.stage = 1}};
}

Strategy context_parallel(ContextKind kind) {
  Strategy s{.dp = 2, .batch = {.micro = 2}};
  s.cp = 2, s.context = kind;
  return s;
}

void expect_as_one_device(const ModernModel& which, const Strategy& strategy) {
  const Model model = modern_model(which);
  SCOPED_TRACE(model.name + " " + name_of(strategy));
  const Difference apart = difference(trained(model, strategy), trained(model, {.batch = {.micro = 2}}));
  EXPECT_LE(apart.loss, kTolerance);
  EXPECT_LE(apart.gradients, kTolerance) << apart.worst;
  EXPECT_LE(apart.values, kTolerance) << apart.worst;
}

TEST(ModernModels, DataAndPipelineParallelRanksTrainAsOneDevice) {
  for (const ModernModel& which : modern_models()) {
    expect_as_one_device(which, {.dp = 2, .pp = 2, .batch = {.micro = 1}, .recompute = {.kind = RecomputeKind::Full}});
    expect_as_one_device(
        which, {.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}, .recompute = {.kind = RecomputeKind::Selective}});
  }
}

TEST(ModernModels, TensorParallelRanksTrainAsOneDevice) {
  for (const ModernModel& which : modern_models())
    if (which.name != "olmo2") expect_as_one_device(which, tensor_parallel(2));
}

TEST(ModernModels, TensorParallelRanksWithoutSequenceParallelism) {
  for (const ModernModel& which : modern_models()) {
    const QkNorm norm = std::get<Transformer>(modern_model(which).shape).attention.qk_norm;
    if (norm == QkNorm::None || norm == QkNorm::Unweighted) expect_as_one_device(which, {.tp = 2, .batch = {.micro = 1}});
  }
}

TEST(ModernModels, ContextParallelRanksTrainAsOneDevice) {
  for (const ModernModel& which : modern_models()) {
    const AttentionSettings a = std::get<Transformer>(modern_model(which).shape).attention;
    expect_as_one_device(which, context_parallel(ContextKind::AllGather));
    if (!a.sinks) expect_as_one_device(which, context_parallel(ContextKind::Ring));
    if (!a.sinks && a.latent.key_value_rank == 0) expect_as_one_device(which, context_parallel(ContextKind::AllToAll));
  }
}

TEST(ModernModels, TheLossFalls) {
  for (const ModernModel& which : modern_models()) expect_the_loss_falls(modern_model(which), {.batch = {.micro = 2}});
}

std::string refusal(const ModernModel& which, Sharding sharding) {
  sharding.seq = 32;
  try {
    build_op_graph(modern_model(which), sharding);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ModernModels, WhatCannotBeCutIsRefusedByName) {
  for (const ModernModel& which : modern_models()) {
    const AttentionSettings a = std::get<Transformer>(modern_model(which).shape).attention;
    const bool latent = a.latent.key_value_rank > 0, one_kernel = a.window > 0 || a.chunk > 0 || a.sinks || latent;
    EXPECT_EQ(refusal(which, {.flash_attention = false}),
              one_kernel
                  ? "windows, chunks, sinks, capped scores and latent attention need one attention kernel: --attention flash"
                  : "");
    EXPECT_EQ(refusal(which, {.tp = 2}),
              a.qk_norm == QkNorm::AllHeads ? "norms over all query heads at once need all of them on each rank: --tp 1"
              : a.qk_norm == QkNorm::PerHead
                  ? "tensor-parallel ranks sum the gradients of norms of queries and keys only with --sequence-parallel"
                  : "");
    EXPECT_EQ(refusal(which, {.cp = 2, .context = ContextKind::Ring}),
              a.sinks ? "attention sinks need all keys of a head on each rank: --context all-gather" : "");
    EXPECT_EQ(refusal(which, {.cp = 2, .context = ContextKind::AllToAll}),
              a.sinks  ? "attention sinks need all keys of a head on each rank: --context all-gather"
              : latent ? "latent attention does not deal out heads over context-parallel ranks: --context all-gather or ring"
                       : "");
  }
  ModernModel biased = modern_models()[1];
  biased.with = [](Transformer& t) { t.block.branch_norms = t.mlp_bias = true; };
  EXPECT_EQ(refusal(biased, {}), "norms and multipliers behind attention and MLP need products without biases before them");
  biased.with = [](Transformer& t) { t.causal = false, t.attention.window = 3; };
  EXPECT_EQ(refusal(biased, {}), "windows and chunks of attention need a causal model");
}

}  // namespace
}  // namespace foreshard::modern_models_test
