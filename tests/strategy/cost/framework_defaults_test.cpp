// What a framework's preset says of a strategy that leaves a field open: the same in every command, because `resolve` begins with it.
#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/operator_style.h"
#include "strategy/kernels/op_cost.h"
#include "strategy/search/search.h"
#include "strategy/tune/tune.h"

namespace foreshard::framework_defaults_test {
namespace {

Strategy resolved(const char* model, const Strategy& strategy) {
  const auto answer = resolve(load_model(model), load_cluster("dgx-a100"), strategy);
  EXPECT_TRUE(std::holds_alternative<Strategy>(answer));
  return std::get<Strategy>(answer);
}

// frameworks/megatron.json: dropout 0.1, clip_norm 1, overlap tp, ring; bf16 parameters and fp32 main gradients.
TEST(FrameworkDefaults, HoldWhereAStrategyLeavesThemOpen) {
  const Strategy s = resolved("gpt2-355m", {.framework = "megatron"});
  EXPECT_EQ(s.dropout, 0.1);
  EXPECT_EQ(s.optimizer.clip_norm, 1);
  EXPECT_EQ(s.communication.overlap, (Overlap{.gradients = false, .p2p = false, .tp = true}));
  EXPECT_EQ(s.context, ContextKind::Ring);
  EXPECT_EQ(s.state_dtypes.param, DType::BF16);
  EXPECT_EQ(s.state_dtypes.grad, DType::F32);
  EXPECT_EQ(s.state_dtypes.state, DType::F32);
  EXPECT_EQ(resolved("gpt2-355m", {.framework = "torchtitan"}).state_dtypes.param, DType::F32);
  EXPECT_EQ(resolved("gpt2-355m", {.framework = "torchtitan"}).context, ContextKind::AllGather);
  EXPECT_EQ(resolved("gpt2-355m", {.framework = "megatron-deepspeed"}).attention, AttentionKernel::Unfused);
}

// Models without learned positions are trained without dropout, whatever the preset says of GPT.
TEST(FrameworkDefaults, DropoutIsOfModelsThatHaveIt) {
  EXPECT_EQ(resolved("llama-2-7b", {.framework = "megatron"}).dropout, 0);
}

TEST(FrameworkDefaults, GiveWayToWhatIsSaid) {
  const Strategy said{.state_dtypes = {.param = DType::F32},
                      .attention = AttentionKernel::Flash,
                      .dropout = 0.2,
                      .optimizer = {.clip_norm = 0},
                      .communication = {.overlap = Overlap{.gradients = true, .p2p = false}},
                      .framework = "megatron-deepspeed"};
  const Strategy s = resolved("gpt2-355m", said);
  EXPECT_EQ(s.dropout, said.dropout);
  EXPECT_EQ(s.optimizer.clip_norm, said.optimizer.clip_norm);
  EXPECT_EQ(s.communication.overlap, said.communication.overlap);
  EXPECT_EQ(s.state_dtypes.param, said.state_dtypes.param);
  EXPECT_EQ(s.attention, said.attention);
}

// Megatron has transfers beside computes only under interleaved schedules, so that NeMo and Megatron-Bridge, which overlap them otherwise,
// wait for them in plain 1F1B. Others do as their presets say.
TEST(FrameworkDefaults, MegatronOverlapsTransfersOfChunks) {
  for (const char* framework : {"nemo", "megatron-bridge", "megatron-bridge-attention-graphs"}) {
    EXPECT_FALSE(overlap_of(framework_preset(framework), 1, true).p2p) << framework;
    EXPECT_TRUE(overlap_of(framework_preset(framework), 2, true).p2p) << framework;
    EXPECT_TRUE(overlap_of(framework_preset(framework), 1, true).gradients) << framework;
  }
  EXPECT_FALSE(overlap_of(framework_preset("megatron"), 2, true).p2p);
  EXPECT_TRUE(overlap_of(framework_preset("foreshard"), 1, true).p2p);
  EXPECT_FALSE(resolved("gpt2-355m", {.framework = "megatron-bridge"}).communication.overlap->p2p);
}

// nanotron's DDP sums gradients during the backward, its ZeRO 1 behind it. Megatron of 2020 waited for tensor-parallel sums.
TEST(FrameworkDefaults, OverlapDependsOnZeroAndRelease) {
  EXPECT_TRUE(overlap_of(framework_preset("nanotron"), 1, false).gradients);
  EXPECT_FALSE(overlap_of(framework_preset("nanotron"), 1, true).gradients);
  EXPECT_TRUE(resolved("gpt2-355m", {.dp = 2, .framework = "nanotron"}).communication.overlap->gradients);
  EXPECT_TRUE(overlap_of(framework_preset("megatron"), 1, true).tp);
  EXPECT_FALSE(overlap_of(framework_preset("megatron-2020"), 1, true).tp);
}

// Megatron split transfers from 2021 to 2022, DeepSpeed's pipeline does; what a strategy states wins.
TEST(FrameworkDefaults, TransfersDependOnTheRelease) {
  for (const char* name :
       {"megatron-2020", "megatron-2022", "megatron-deepspeed", "megatron-deepspeed-bf16", "deepspeed", "internevo"})
    EXPECT_EQ(resolved("gpt2-355m", {.framework = name}).communication.transfers, Transfers::Split) << name;
  for (const char* name : {"foreshard", "megatron", "megatron-zero-bubble", "nemo", "aleph-alpha-scaling", "torchtitan"})
    EXPECT_EQ(resolved("gpt2-355m", {.framework = name}).communication.transfers, Transfers::Whole) << name;
  Strategy s{.framework = "megatron-2022"};
  s.communication.transfers = Transfers::Whole;
  EXPECT_EQ(resolved("gpt2-355m", s).communication.transfers, Transfers::Whole);
  // Since September 2021 sums of input gradients run beside the products of the weights' gradients.
  EXPECT_TRUE(overlap_of(framework_preset("megatron-2022"), 1, true).tp);
}

// nanotron's norms and rotary embeddings are fused kernels; sums of contiguous values stream, copies into another layout, concatenations and
// operators on halves of rows or on broadcast values load no vectors; others are those of eager PyTorch. Bytes and results per element of
// docs/cost-model.md, over the bytes of a fused kernel.
TEST(FrameworkDefaults, KernelsOfNanotron) {
  const FrameworkPreset& preset = framework_preset("nanotron");
  const Gpu gpu = load_gpu("h100-80");
  const double eager = preset.elementwise, fused = framework_preset("megatron").elementwise;
  ASSERT_LT(eager, fused);
  const double result = unvectorized_slowdown(gpu, 1);  // of a result, over streaming a byte
  ASSERT_GT(result, 8);
  const auto slowdown = [&](const Operation& op, Phase phase) {
    return slowdown_of(gpu, preset, {.op = op, .phase = phase, .traffic = {1}});
  };
  EXPECT_DOUBLE_EQ(slowdown(ops::Norm{}, Phase::Forward), 1 / fused);
  EXPECT_DOUBLE_EQ(slowdown(ops::Add{}, Phase::Forward), 1);
  EXPECT_NEAR(slowdown(ops::Rope{}, Phase::Forward), (7 * result + 8 / fused) / 12, 0.02);
  EXPECT_NEAR(slowdown(ops::Rope{}, Phase::InputGrad), (8 * result + 8 / fused) / 12, 0.02);
  EXPECT_NEAR(slowdown(ops::Activation{}, Phase::Forward), 2 * result / 6, 0.02);
  EXPECT_NEAR(slowdown(ops::Activation{}, Phase::InputGrad), (4 * result + 6) / 10, 0.02);
  EXPECT_NEAR(slowdown(ops::CrossEntropy{}, Phase::Forward), (3 * result + 8 + 8 / eager) / 8, 0.03);
  EXPECT_NEAR(slowdown(ops::CrossEntropy{}, Phase::InputGrad), 2 * result / 6, 0.02);
}

// A rotation that scales is not fused in Megatron core: for each of the 4608 elements of gpt-oss's queries and keys 2.5 results of kernels
// that load no vectors, two that are joined, and 6 bytes that stream, over 4 for each of the 5120 of a row; in the backward one and 14.
TEST(FrameworkDefaults, ScaledRotationsOfMegatronAreEager) {
  const Gpu gpu = load_gpu("h100-80");
  const double result = unvectorized_slowdown(gpu, 1), share = 4608.0 / 5120 / 4;
  for (const char* name : {"megatron", "megatron-bridge", "megatron-bridge-graphs"}) {
    const FrameworkPreset& preset = framework_preset(name);
    const double joined = result / preset.styles.joins;
    const auto slowdown = [&](double scale, Phase phase) {
      return slowdown_of(gpu, preset, {.op = ops::Rope{.scale = scale}, .phase = phase, .traffic = {1}});
    };
    EXPECT_DOUBLE_EQ(slowdown(1, Phase::Forward), 1 / preset.elementwise);
    EXPECT_NEAR(slowdown(1.3, Phase::Forward), share * (2.5 * result + 2 * joined + 6), 0.02);
    EXPECT_NEAR(slowdown(1.3, Phase::InputGrad), share * (2.5 * result + joined + 14), 0.02);
  }
}

// Our own executor: no dropout, no clipping, gradients and transfers beside the computes.
TEST(FrameworkDefaults, OfOurOwnExecutor) {
  const Strategy s = resolved("gpt2-355m", {});
  EXPECT_EQ(s.dropout, 0);
  EXPECT_EQ(s.optimizer.clip_norm, 0);
  EXPECT_EQ(s.communication.overlap, Overlap{});
  EXPECT_EQ(s.context, ContextKind::AllGather);
}

// What was resolved is saved, and says the same when it is read again.
TEST(FrameworkDefaults, AreSavedWithTheStrategy) {
  const Strategy s = resolved("gpt2-355m", {.framework = "megatron"});
  EXPECT_EQ(parse_strategy(to_json(s), "saved"), s);
  EXPECT_EQ(resolved("gpt2-355m", parse_strategy(to_json(s), "saved")), s);
}

// Without clipping nothing asks for the norm; a framework's optimizer still steps after the last sum. Ours does not wait for the others.
TEST(FrameworkDefaults, TheUpdateWaitsForAllSums) {
  const auto waits = [](const char* framework) {
    const Strategy s{.dp = 8,
                     .optimizer = {.clip_norm = 0},
                     .communication = {.overlap = parse_overlap("none", "")},
                     .framework = framework};
    const auto answer = tuned_plan(load_model("gpt2-355m"), load_cluster("dgx-a100"), s, {.ignore_memory = true});
    const Plan& plan = std::get<Lowered>(answer).plan;
    std::size_t sums = 0, waited = 0;
    for (const Segment& segment : plan.segments) {
      if (segment.name != "update.0") continue;
      for (const Instruction& run : segment.instructions) {
        if (run.name == "adam") sums += 1;
        if (run.name == "gradients summed") waited = run.waits.size();
      }
    }
    EXPECT_GT(sums, 1u) << framework;
    return waited == sums ? "all" : waited == 0 ? "its own" : "some";
  };
  EXPECT_STREQ(waits("megatron"), "all");
  EXPECT_STREQ(waits("foreshard"), "its own");
}

TEST(FrameworkDefaults, HoldInASearch) {
  SearchOptions options{.base = {.batch = {.global = 32, .seq = 512}, .framework = "megatron"}, .refine = 2, .threads = 1};
  options.base.batch.micro = 1, options.base.pp = 1, options.base.tp = 1, options.fixed = {"micro_batch", "pp", "tp"};
  const auto answer = search(load_model("gpt2-355m"), load_cluster("dgx-a100"), options);
  ASSERT_TRUE(std::holds_alternative<SearchResult>(answer));
  for (const Candidate& candidate : std::get<SearchResult>(answer).ranked) {
    EXPECT_EQ(candidate.strategy.optimizer.clip_norm, 1);
    EXPECT_EQ(candidate.strategy.dropout, 0.1);
  }
}

}  // namespace
}  // namespace foreshard::framework_defaults_test
