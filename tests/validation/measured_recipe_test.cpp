// What recipes set where a row of a model with experts is silent.
#include "validation/measured_recipe.h"

#include <gtest/gtest.h>

#include "validation/measured_case.h"

namespace foreshard::measured_recipe_test {
namespace {

MeasuredRow summary_row(const std::map<std::string, std::string>& cells) {
  MeasuredRow row;
  row.cells = {{"table_or_url", "docs/performance-summary-archive.md@067f987 line 1 (26.02 container)"},
               {"framework", "megatron-bridge"},
               {"model_name", "Qwen3_30B_a3B"},
               {"gpu", "GB200"},
               {"precision", "mxfp8"}};
  for (const auto& [column, cell] : cells) row.cells[column] = cell;
  return row;
}

TEST(MeasuredRecipe, ReleasesDiffer) {
  const auto gb200 = recipe_of(summary_row({}));
  ASSERT_TRUE(gb200);
  EXPECT_TRUE(gb200->once);
  EXPECT_FALSE(gb200->overlaps);
  EXPECT_EQ(gb200->recompute, Recompute{});
  EXPECT_FALSE(recipe_of(summary_row({{"gpu", "B200"}}))->once);
  EXPECT_TRUE(recipe_of(summary_row({{"gpu", "H100"}}))->overlaps);
  const std::string later = "docs/performance-summary-archive.md@067f987 line 1 (26.02.01 container)";
  EXPECT_TRUE(recipe_of(summary_row({{"gpu", "B200"}, {"table_or_url", later}}))->once);
  EXPECT_FALSE(recipe_of(summary_row({{"gpu", "H100"}, {"table_or_url", later}}))->overlaps);
  EXPECT_TRUE(recipe_of(summary_row({{"model_name", "Qwen3_235B_a22B"}, {"gpu", "B300"}, {"table_or_url", later}}))->overlaps);
}

TEST(MeasuredRecipe, ModulesThatRunAgain) {
  const auto modules = [](const std::string& model, const std::string& gpu) {
    return recipe_of(summary_row({{"model_name", model}, {"gpu", gpu}}))->recompute.modules;
  };
  EXPECT_EQ(modules("GPT OSS 120B", "H100"), (std::vector<std::string>{"norm", "activation"}));
  EXPECT_TRUE(modules("GPT OSS 120B", "GB300").empty());
  const std::string before = "docs/performance-summary-archive.md@067f987 line 1 (25.11 container)";
  for (const char* gpu : {"GB300", "GB200", "B200", "H100"})
    EXPECT_TRUE(recipe_of(summary_row({{"model_name", "GPT OSS 120B"}, {"gpu", gpu}, {"table_or_url", before}}))
                    ->recompute.modules.empty());
  EXPECT_EQ(modules("DeepSeekV3", "B200"), std::vector<std::string>{"qkv"});
}

TEST(MeasuredRecipe, GraphsOfLayersAndOfTheirParts) {
  const std::string first = "docs/performance-summary-archive.md@067f987 line 1 (25.09 container)";
  EXPECT_EQ(recipe_of(summary_row({{"table_or_url", first}}))->variant, "-graphs");
  EXPECT_EQ(recipe_of(summary_row({{"table_or_url", first}, {"gpu", "H100"}}))->variant, "");
  EXPECT_EQ(recipe_of(summary_row({}))->variant, "-router-graphs");
  EXPECT_EQ(recipe_of(summary_row({{"precision", "bf16"}}))->variant, "-attention-graphs");
}

// From 26.06 on MXFP8 on Grace Blackwell has the whole iteration in one graph; a release that is not listed follows the newest one.
TEST(MeasuredRecipe, LaterReleasesFollowTheNewest) {
  const auto recipe = [](const std::string& release, const std::string& model, const std::string& gpu,
                         const std::string& precision) {
    return *recipe_of(
        summary_row({{"table_or_url", "docs/performance-summary-archive.md@067f987 line 1 (" + release + " container)"},
                     {"model_name", model},
                     {"gpu", gpu},
                     {"precision", precision}}));
  };
  for (const char* model : {"DeepSeekV3", "GPT OSS 120B", "Qwen3_30B_a3B", "Qwen3_235B_a22B"}) {
    for (const char* release : {"26.06", "26.06.01", "26.08", "99.01"}) {
      const Recipe now = recipe(release, model, "GB300", "mxfp8");
      EXPECT_EQ(now.variant, "-iteration-graphs") << model << release;
      EXPECT_TRUE(now.once && now.overlaps) << model << release;
    }
    EXPECT_NE(recipe("26.04", model, "GB300", "mxfp8").variant, "-iteration-graphs") << model;
    EXPECT_NE(recipe("26.08", model, "GB300", "bf16").variant, "-iteration-graphs") << model;
    EXPECT_EQ(recipe("26.08", model, "H100", "fp8").variant, "") << model;
  }
  EXPECT_EQ(recipe("26.06", "Qwen3_235B_a22B", "B300", "mxfp8").variant, "");
  EXPECT_EQ(recipe("26.06.01", "Qwen3_235B_a22B", "B300", "mxfp8").variant, "-iteration-graphs");
  EXPECT_EQ(recipe("26.06", "DeepSeekV3", "B300", "mxfp8").variant, "-attention-graphs");
  EXPECT_TRUE(recipe("26.04", "GPT OSS 120B", "GB200", "bf16").once);
  EXPECT_FALSE(recipe("26.04.01", "GPT OSS 120B", "GB200", "bf16").once);
  EXPECT_EQ(recipe("26.08", "DeepSeekV3", "GB200", "mxfp8").recompute.modules, std::vector<std::string>{"qkv"});
  EXPECT_TRUE(recipe("26.04", "DeepSeekV3", "GB200", "mxfp8").recompute.modules.empty());
}

// Dense models: how many layers run again or have their activations in host memory, unless the row says so itself.
TEST(MeasuredRecipe, DenseModelsKeepActivationsInHostMemory) {
  const auto dense = [](const std::string& release, const std::string& model, const std::string& gpu,
                        const std::string& precision) {
    return summary_row({{"table_or_url", "docs/performance-summary-archive.md@067f987 line 1 (" + release + " container)"},
                        {"model_name", model},
                        {"gpu", gpu},
                        {"precision", precision},
                        {"offload", "unknown"}});
  };
  EXPECT_EQ(with_host_memory(dense("25.11", "LLAMA3_70B", "GB200", "fp8-cs")).text("offload"),
            "activations of 40 layers to CPU");
  EXPECT_EQ(with_host_memory(dense("25.09", "LLAMA3.1_405B", "GB200", "fp8-cs")).text("offload"),
            "activations of 95 layers to CPU");
  EXPECT_EQ(with_host_memory(dense("25.11", "LLAMA3_70B", "GB200", "fp8-mx")).text("offload"), "unknown");
  MeasuredRow stated = dense("25.11", "LLAMA3_70B", "GB300", "fp8-cs");
  stated.cells["offload"] = "none";
  EXPECT_EQ(with_host_memory(stated).text("offload"), "none");
  const auto again = recipe_of(dense("25.11", "LLAMA3_8B", "H100", "fp8-cs"));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->recompute, (Recompute{.kind = RecomputeKind::Full, .layers = 5}));
  EXPECT_EQ(recipe_of(dense("25.09", "LLAMA3_8B", "H100", "fp8-cs"))->recompute, Recompute{});
  EXPECT_FALSE(recipe_of(dense("26.02", "LLAMA3_8B", "H100", "fp8")));  // these rows state it
}

TEST(MeasuredRecipe, OthersHaveNone) {
  EXPECT_FALSE(recipe_of(summary_row({{"framework", "nemo"}})));
  EXPECT_FALSE(recipe_of(summary_row({{"table_or_url", "docs/performance-summary-archive.md (24.12 container)"}})));
  EXPECT_FALSE(recipe_of(summary_row({{"table_or_url", "skills/SKILL.md"}})));
}

// Their recipes have a precision-aware optimizer with moments in bf16.
TEST(MeasuredRecipe, MomentsOfDeepSeekAndMoonlightAreNarrow) {
  EXPECT_TRUE(recipe_of(summary_row({{"model_name", "DeepSeekV3"}}))->narrow_moments);
  EXPECT_FALSE(recipe_of(summary_row({}))->narrow_moments);
  const std::string page = "NVIDIA-NeMo/Megatron-Bridge skills/nemo-mbridge-perf-activation-recompute/SKILL.md@067f987";
  EXPECT_TRUE(recipe_of(summary_row({{"model_name", "Moonlight-16B-A3B"}, {"table_or_url", page}}))->narrow_moments);
}

// Moonlight's recipe leaves moe_router_fusion and apply_rope_fusion off.
TEST(MeasuredRecipe, RouterAndRotationOfMoonlightAreNotFused) {
  const std::string page = "NVIDIA-NeMo/Megatron-Bridge skills/nemo-mbridge-perf-activation-recompute/SKILL.md@067f987";
  EXPECT_EQ(recipe_of(summary_row({{"model_name", "Moonlight-16B-A3B"}, {"table_or_url", page}}))->variant, "-unfused");
  EXPECT_EQ(recipe_of(summary_row({{"model_name", "DeepSeekV3"}, {"gpu", "B200"}}))->variant, "");
}

TEST(MeasuredRecipe, GroupsOverNodesSendOncePerNode) {
  EXPECT_EQ(once_dispatcher(8, 8), Dispatcher::OncePerRank);
  EXPECT_EQ(once_dispatcher(64, 8), Dispatcher::OncePerNode);
}

}  // namespace
}  // namespace foreshard::measured_recipe_test
