// Published rows of models with experts, as questions to the engine.
#include "validation/measured_experts.h"

#include <gtest/gtest.h>

namespace foreshard::measured_experts_test {
namespace {

// Qwen3-30B-A3B on two nodes of eight H100, as a summary of Megatron-Bridge prints it.
MeasuredRow row_with(const std::map<std::string, std::string>& cells) {
  MeasuredRow row;
  row.cells = {{"source", "table"},
               {"row_id", "r"},
               {"model_name", "Qwen3_30B_a3B"},
               {"layers", "48"},
               {"hidden", "2048"},
               {"ffn_hidden", "6144"},
               {"heads", "32"},
               {"kv_heads", "4"},
               {"seq_len", "4096"},
               {"vocab", "151936"},
               {"precision", "bf16"},
               {"gpu", "H100"},
               {"gpus_per_node", "8"},
               {"num_gpus", "16"},
               {"tp", "1"},
               {"pp", "1"},
               {"vpp", "1"},
               {"dp", "16"},
               {"cp", "1"},
               {"ep", "8"},
               {"sequence_parallel", "yes"},
               {"micro_batch", "1"},
               {"global_batch", "64"},
               {"framework", "megatron-bridge"},
               {"recompute", "none"},
               {"activation", "swiglu"},
               {"norm", "rmsnorm"},
               {"measured_quantity", "iter_time_s"},
               {"measured_value", "1"}};
  for (const auto& [column, cell] : cells) row.cells[column] = cell;
  return row;
}

MeasuredCase asked(const std::map<std::string, std::string>& cells) {
  const auto answer = measured_case(row_with(cells));
  if (const auto* reason = std::get_if<SkipReason>(&answer)) ADD_FAILURE() << name_of(*reason);
  return std::holds_alternative<MeasuredCase>(answer) ? std::get<MeasuredCase>(answer) : MeasuredCase{};
}
std::string skipped(const std::map<std::string, std::string>& cells) {
  const auto answer = measured_case(row_with(cells));
  const auto* reason = std::get_if<SkipReason>(&answer);
  return reason ? name_of(*reason) : "asked";
}
const Transformer& shape_of(const MeasuredCase& question) { return std::get<Transformer>(question.model.shape); }

const std::map<std::string, std::string> kToy = {{"model_name", "moe-4L-512"}, {"layers", "4"}, {"hidden", "512"},
                                                 {"ffn_hidden", "1344"},       {"heads", "8"},  {"kv_heads", "8"}};
std::map<std::string, std::string> toy(const std::string& flags) {
  std::map<std::string, std::string> cells = kToy;
  cells["framework_flags"] = "--disable-bias-linear --transformer-impl transformer_engine " + flags;
  return cells;
}

TEST(MeasuredExperts, TheShippedModelOfThatNameWhereTheShapeAgrees) {
  const MeasuredCase question = asked({});
  EXPECT_EQ(question.model.name, "qwen3-30b-a3b");
  EXPECT_EQ(shape_of(question).block.experts.count, 128);
  EXPECT_EQ(shape_of(question).block.experts.width, 768);  // the columns have the width of the dense MLP
  EXPECT_EQ(question.candidates.front().batch.seq, 4096);
  EXPECT_EQ(asked({{"model_name", "Qwen3_30B_a3B (tokendrop)"}}).model.name, "qwen3-30b-a3b");
  EXPECT_FALSE(shipped_model(row_with({{"layers", "47"}})));
  EXPECT_FALSE(shipped_model(row_with({{"hidden", "2049"}})));
  EXPECT_FALSE(shipped_model(row_with({{"model_name", "Grok-1 314B"}})));
}

// DeepSeek-V3 has one module for multi-token prediction unless the row says that the run had none.
TEST(MeasuredExperts, ModulesForMultiTokenPredictionAsTheRowSays) {
  const auto modules = [](const char* name) {
    const auto model = shipped_model(row_with({{"model_name", name}, {"layers", "61"}, {"hidden", "7168"}}));
    return std::get<Transformer>(model.value().shape).block.mtp_modules;
  };
  EXPECT_EQ(modules("DeepSeekV3"), 1);
  EXPECT_EQ(modules("DeepSeekV3 (w/ MTP)"), 1);
  EXPECT_EQ(modules("DeepSeekV3 (w/o MTP)"), 0);
  EXPECT_EQ(shape_of(asked(toy("--num-experts 4 --mtp-num-layers 2"))).block.mtp_modules, 2);
}

TEST(MeasuredExperts, OtherModelsFromTheirFlags) {
  const Experts experts =
      shape_of(
          asked(toy("--num-experts 8 --moe-router-topk 4 --moe-ffn-hidden-size 1024 --moe-shared-expert-intermediate-size 256 "
                    "--moe-layer-freq ([0]*1+[1]*3)")))
          .block.experts;
  EXPECT_EQ(experts.count, 8);
  EXPECT_EQ(experts.chosen, 4);
  EXPECT_EQ(experts.width, 1024);
  EXPECT_EQ(experts.shared_width, 256);
  EXPECT_EQ(experts.layers, (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ(experts.score, RouterScore::SoftmaxOfChosen);
  const Experts plain = shape_of(asked(toy("--num-experts 8 --moe-router-topk 1 --moe-layer-freq 2"))).block.experts;
  EXPECT_EQ(plain.width, 1344);  // the columns' ffn_hidden
  EXPECT_EQ(plain.layers, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(plain.score, RouterScore::Softmax);
}

// What a recipe has in graphs decides before the scaling of 8-bit products.
TEST(MeasuredExperts, GraphsPickThePresetBeforeTheScaling) {
  const auto on = [](const char* gpu) {
    return asked({{"table_or_url", "performance-summary.md (26.02 container)"}, {"gpu", gpu}, {"precision", "fp8"}}).framework;
  };
  EXPECT_EQ(on("GB200"), "megatron-bridge-attention-graphs");
  EXPECT_EQ(on("H100"), "megatron-bridge-current");
}

// tp 2 x dp 8 = 16 ranks: ep 8 leaves room for etp 2, ep 16 does not.
TEST(MeasuredExperts, ExpertsAreCutAsTheDenseLayersUnlessStatedOrWithoutRoom) {
  const auto etp = [](const char* ep, const char* flags) {
    return asked({{"framework", "megatron"}, {"tp", "2"}, {"dp", "8"}, {"ep", ep}, {"framework_flags", flags}})
        .candidates.front()
        .experts.etp;
  };
  EXPECT_EQ(etp("8", ""), 2);
  EXPECT_EQ(etp("16", ""), 1);
  EXPECT_EQ(etp("4", "--expert-tensor-parallel-size 1"), 1);
  const MeasuredCase question = asked({{"framework", "megatron"}, {"tp", "2"}, {"dp", "8"}}),
                     bridge = asked({{"tp", "2"}, {"dp", "8"}});
  EXPECT_EQ(bridge.candidates.front().experts.etp, 1);  // of its recipes
  EXPECT_EQ(std::ranges::count(bridge.assumed, "etp"), 0);
  EXPECT_EQ(question.candidates.front().experts.ep, 8);
  EXPECT_EQ(question.candidates.front().dp, 8);  // of the dense layers
  EXPECT_TRUE(question.candidates.front().sequence_parallel);
  EXPECT_TRUE(std::ranges::count(question.assumed, "etp") == 1);
  EXPECT_TRUE(std::ranges::count(asked({}).assumed, "etp") == 0);
}

TEST(MeasuredExperts, BalancedAndDroppedOnlyWhereTheRowSaysSo) {
  EXPECT_EQ(asked({}).candidates.front().experts.load, ExpertLoad{});
  EXPECT_EQ(asked({}).candidates.front().experts.capacity, 0);
  EXPECT_EQ(asked({{"model_name", "Qwen3_30B_a3B (tokendrop)"}}).candidates.front().experts.capacity, 1);
  EXPECT_EQ(asked({{"framework_flags", "--moe-expert-capacity-factor 1.25"}}).candidates.front().experts.capacity, 1.25);
  const std::string overlap = "--overlap-moe-expert-parallel-comm";
  EXPECT_EQ(asked({{"framework_flags", overlap}}).candidates.front().pipeline,
            (PipelineChoice{.schedule = Schedule::OneFOneBCells}));
  EXPECT_EQ(asked({{"framework_flags", overlap + " --delay-wgrad-compute"}}).candidates.front().pipeline,
            (PipelineChoice{.schedule = Schedule::OneFOneBCells, .delay_wgrad = true}));
  EXPECT_EQ(asked({{"framework_flags", "--delay-wgrad-compute"}}).candidates.front().pipeline, PipelineChoice{});
  // Megatron-Bridge's scripts set both together.
  EXPECT_EQ(asked({{"table_or_url", "performance-summary.md (26.02 container)"}, {"gpu", "H100"}, {"precision", "bf16"}})
                .candidates.front()
                .pipeline,
            (PipelineChoice{.schedule = Schedule::OneFOneBCells, .delay_wgrad = true}));
}

TEST(MeasuredExperts, WhatIsMissingIsNamed) {
  EXPECT_EQ(skipped({{"layers", "47"}}), "unknown_experts");
  EXPECT_EQ(skipped({{"layers", "unknown"}}), "unknown_shape");
  EXPECT_EQ(skipped({{"ep", "unknown"}}), "unknown_degree");
  EXPECT_EQ(skipped({{"num_gpus", "unknown"}, {"dp", "unknown"}}), "unknown_degree");
  EXPECT_EQ(skipped({{"global_batch", "unknown"}}), "unknown_batch");
  EXPECT_EQ(skipped({{"model_name", "one MoE layer, DeepSeek proxy"}}), "mixture_alone");
  EXPECT_EQ(skipped(toy("--num-experts 8 --multi-latent-attention")), "mla");  // of unknown widths
  EXPECT_EQ(skipped({{"model_name", "DeepSeekV3 (w/o MTP)"}, {"layers", "61"}, {"hidden", "7168"}}), "asked");
}

TEST(MeasuredExperts, FeedForwardRunsAgainWithoutExperts) {
  const MeasuredRow row = row_with({{"recompute", "selective (mlp)"}});
  EXPECT_FALSE(recompute_of_modules(row, true));
  ASSERT_TRUE(recompute_of_modules(row, false));
  EXPECT_EQ(recompute_of_modules(row, false)->modules, std::vector<std::string>{"mlp"});
}

TEST(MeasuredExperts, MegatronsModulesOfRecomputation) {
  const auto modules = [](const char* cell) { return recompute_of_modules(row_with({{"recompute", cell}}), true); };
  EXPECT_EQ(modules("selective (layernorm, moe_act)")->modules, (std::vector<std::string>{"norm", "activation"}));
  EXPECT_EQ(modules("selective [moe_act]")->modules, (std::vector<std::string>{"activation"}));
  EXPECT_EQ(modules("selective (mla_up_proj, mlp)")->modules, (std::vector<std::string>{"qkv"}));
  EXPECT_FALSE(modules("selective"));
  EXPECT_FALSE(modules("none"));
  EXPECT_EQ(asked({{"recompute", "unknown"}}).candidates.size(), 3U);
}

// The recipes' layouts of 61 layers: 4 x 15 + 1, 8 x 7 + 5, 1 + 2 x 30 + 0.
TEST(MeasuredExperts, UnevenStagesAsTheRecipesHaveThem) {
  EXPECT_EQ(recipe_split(61, 16), "4x15,1");
  EXPECT_EQ(recipe_split(61, 8), "8x7,5");
  EXPECT_EQ(recipe_split(61, 32), "1,2x30,0");
  EXPECT_EQ(recipe_split(48, 24), "");
  EXPECT_EQ(recipe_split(61, 1), "");
}

// 64 nodes of four GPUs: 16 in each of four NVLink domains, not 18, 18, 18 and 10. 72 GPUs fill one. Dense rows are as they were.
TEST(MeasuredExperts, JobsHaveEqualPartsOfNvlinkDomains) {
  const auto domain = [](const char* gpus, const std::map<std::string, std::string>& more) {
    std::map<std::string, std::string> cells = {
        {"gpu", "GB200"}, {"gpus_per_node", "4"}, {"num_gpus", gpus}, {"dp", gpus}, {"global_batch", "720"}};
    cells.insert(more.begin(), more.end());
    return asked(cells).cluster.nodes.front().shape.gpus;
  };
  EXPECT_EQ(domain("144", {}), 72);
  EXPECT_EQ(domain("72", {}), 72);
  EXPECT_EQ(domain("256", {{"global_batch", "256"}}), 64);
  EXPECT_EQ(domain("256", {{"ep", "1"}, {"model_name", "Llama"}, {"params_b", "8"}}), 72);
}

}  // namespace
}  // namespace foreshard::measured_experts_test
