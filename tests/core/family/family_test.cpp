// The families of today: parameters and FLOPs of published checkpoints, to the element, from their config.json alone.
#include "core/model/family.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/graph/op_graph.h"
#include "core/graph/transformer_flops.h"
#include "core/json/json_edit.h"
#include "tests/changed_text.h"

namespace foreshard::family_test {

static Transformer shape(const std::string& name) { return std::get<Transformer>(load_model(name).shape); }
static std::string text_of(const std::string& name) { return read_file(data_directory() + "/models/" + name + ".json"); }

// A shipped config with one value changed.
static Transformer with(const std::string& name, const std::string& key, const std::string& value) {
  return std::get<Transformer>(parse_model(with_json_value(text_of(name), key, value, "test"), "config.json").shape);
}
static std::string message(const std::string& name, const std::string& key, const std::string& value) {
  try {
    with(name, key, value);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Totals: what the checkpoints store (safetensors indices of the Hugging Face repositories), less copies of tied ends, modules
// for multi-token prediction and vision parts. Actives count the chosen experts, shared experts, routers and both ends.
TEST(Families, ParametersOfPublishedCheckpoints) {
  struct Row {
    const char* name;
    std::int64_t total, active = 0, without_embedding = 0;
  };
  const Row rows[] = {
      {"qwen3-0.6b", 596'049'920},
      {"qwen3-8b", 8'190'735'360},
      {"qwen3-32b", 32'762'123'264},
      {"qwen3-30b-a3b", 30'532'122'624, 3'353'032'704, 3'041'867'776},
      {"qwen3-235b-a22b", 235'093'634'560, 22'190'763'520, 21'568'433'664},
      {"mixtral-8x7b", 46'702'792'704, 12'879'925'248},
      {"mixtral-8x22b", 140'620'634'112, 39'152'031'744},
      {"deepseek-v2", 235'741'434'880, 21'375'800'320},
      {"deepseek-v2-lite", 15'706'484'224, 2'661'150'208, 2'451'435'008},
      {"deepseek-v3", 671'026'404'352, 37'552'282'624, 36'625'603'584},
      {"kimi-k2", 1'026'408'209'408, 32'861'477'888, 31'687'072'768},
      {"moonlight-16b-a3b", 15'960'108'544, 2'914'774'528},
      {"gpt-oss-20b", 20'914'757'184, 4'187'440'704, 3'608'307'264},
      {"gpt-oss-120b", 116'829'156'672, 5'711'982'912, 5'132'849'472},
      {"llama-4-scout", 107'769'861'120, 17'172'894'720},
      {"llama-4-maverick", 400'711'848'960, 17'184'691'200},
      {"gemma-2-2b", 2'614'341'888},
      {"gemma-2-9b", 9'241'705'984},
      {"gemma-2-27b", 27'227'128'320},
      {"gemma-3-1b", 999'885'952},
      {"gemma-3-4b", 3'880'263'168},
      {"gemma-3-27b", 27'009'346'304},
      {"glm-4.5-air", 106'852'245'504, 13'424'123'904},
      {"glm-4.5", 352'797'814'784, 33'632'251'904},
      {"olmo-2-7b", 7'298'617'344},
      {"olmo-2-32b", 32'234'279'936},
      {"olmoe-1b-7b", 6'919'161'856, 1'282'017'280},
      {"phi-3-mini-4k", 3'821'079'552},
      {"phi-4", 14'659'507'200},
      {"granite-3.3-8b", 8'170'864'640},
      {"granite-3.1-1b-a400m", 1'334'628'352, 428'658'688},
      {"granite-3.1-3b-a800m", 3'298'793'472, 882'874'368},
      {"minimax-m2", 228'689'748'992, 11'030'537'216, 10'415'940'608},
  };
  for (const Row& row : rows) {
    const ParameterCounts counts = parameter_counts(shape(row.name));
    EXPECT_EQ(counts.total, row.total) << row.name;
    EXPECT_EQ(counts.active, row.active > 0 ? row.active : row.total) << row.name;
    if (row.without_embedding > 0) {
      EXPECT_EQ(counts.active - counts.input_embedding, row.without_embedding) << row.name;
    }
    EXPECT_EQ(parameter_count(load_model(row.name)), counts.total + counts.mtp) << row.name;
  }
}

// gpt-oss stretches its positions 32 times by YaRN, which multiplies queries and keys by 0.1 ln(32) + 1; Llama 3's scaling does not.
TEST(Families, YarnScalesQueriesAndKeys) {
  EXPECT_NEAR(shape("gpt-oss-20b").attention.rope_scale, 1.34657, 1e-5);
  EXPECT_EQ(shape("llama-3-8b").attention.rope_scale, 1);
}

TEST(Families, RoutedExpertsCorrectionBiasesAndModulesForMultiTokenPrediction) {
  EXPECT_EQ(parameter_counts(shape("qwen3-30b-a3b")).routed, 28'991'029'248);
  EXPECT_EQ(parameter_counts(shape("qwen3-235b-a22b")).routed, 227'096'395'776);
  EXPECT_EQ(parameter_counts(shape("mixtral-8x7b")).routed, 45'097'156'608);
  EXPECT_EQ(parameter_counts(shape("deepseek-v3")).routed, 653'908'770'816);
  EXPECT_EQ(parameter_counts(shape("kimi-k2")).routed, 1'014'686'023'680);
  EXPECT_EQ(parameter_counts(shape("glm-4.5")).routed, 335'963'750'400);
  // The published figure of gpt-oss counts the weights of the experts, 4 or 128 x 36 x 3 x 2880^2, without their biases.
  const Transformer oss = shape("gpt-oss-120b");
  EXPECT_EQ(parameter_counts(oss).routed - 36 * 128 * std::int64_t{3 * 2880}, 36 * 128 * std::int64_t{24'883'200});
  EXPECT_EQ(parameter_counts(shape("deepseek-v3")).correction_bias, 14'848);
  EXPECT_EQ(parameter_counts(shape("kimi-k2")).correction_bias, 23'040);
  EXPECT_EQ(parameter_counts(shape("moonlight-16b-a3b")).correction_bias, 1'664);
  EXPECT_EQ(parameter_counts(shape("glm-4.5-air")).correction_bias, 5'760);
  EXPECT_EQ(parameter_counts(shape("glm-4.5")).correction_bias, 14'240);
  EXPECT_EQ(parameter_counts(shape("minimax-m2")).correction_bias, 15'872);
  EXPECT_EQ(parameter_counts(shape("mixtral-8x7b")).correction_bias, 0);
  // A layer with its 256 correction biases is 11,507,286,272; two norms, the product and the last norm 102,781,952.
  EXPECT_EQ(parameter_counts(shape("deepseek-v3")).mtp, 11'507'286'272 - 256 + 102'781'952);
  EXPECT_EQ(parameter_counts(shape("glm-4.5-air")).mtp + 128, 2'375'059'584);
  EXPECT_EQ(parameter_counts(shape("glm-4.5")).mtp + 160, 3'988'069'792);
}

// DeepSeek-V3 as it is stored: main model with correction biases, the module with copies of both ends, and the fp32 scales.
TEST(Families, DeepSeekV3AsItIsStored) {
  const ParameterCounts counts = parameter_counts(shape("deepseek-v3"));
  const std::int64_t ends = 2 * std::int64_t{129'280} * 7168, scales = 41'540'496;
  EXPECT_EQ(counts.total + counts.correction_bias, 671'026'419'200);
  EXPECT_EQ(counts.total + counts.correction_bias + counts.mtp + 256 + ends + scales, 684'531'386'000);
}

// GFLOP per token, s = 4096 unless said: products; core over the full square; training with the full square, with half of it
// for causality, and with the exact mask.
TEST(Families, FlopsPerToken) {
  struct Row {
    const char* name;
    std::int64_t seq;
    bool with_modules;
    double products, core, full, half, exact;
  };
  const Row rows[] = {{"deepseek-v3", 4096, false, 73.249, 20.468, 281.152, 250.450, 250.457},
                      {"deepseek-v3", 4096, true, 76.479, 20.804, 291.847, 260.642, 260.649},
                      {"deepseek-v2", 4096, true, 41.702, 20.133, 185.503, 155.304, 155.311},
                      {"kimi-k2", 4096, true, 63.372, 10.234, 220.819, 205.468, 205.471},
                      {"qwen3-30b-a3b", 4096, true, 6.083, 3.221, 27.914, 23.082, 23.083},
                      {"qwen3-235b-a22b", 4096, true, 43.135, 12.616, 167.255, 148.331, 148.335},
                      {"mixtral-8x7b", 4096, true, 25.497, 2.147, 82.934, 79.713, 79.714},
                      {"glm-4.5", 4096, false, 65.708, 18.522, 252.690, 224.907, 224.914},
                      {"gpt-oss-120b", 4096, true, 10.262, 2.416, 38.034, 34.410, 32.710},
                      {"gpt-oss-120b", 8192, true, 10.262, 4.832, 45.282, 38.034, 34.523},
                      {"gemma-3-27b", 4096, true, 54.016, 4.161, 174.530, 168.289, 165.345},
                      {"llama-4-scout", 16384, true, 32.276, 16.106, 145.146, 120.987, 111.928}};
  for (const Row& row : rows) {
    Transformer t = shape(row.name);
    if (!row.with_modules) t.block.mtp_modules = 0;
    const TransformerFlops flops = transformer_flops(t, row.seq);
    const double scale = 1e-9 / static_cast<double>(row.seq);
    EXPECT_NEAR(flops.products.value * scale / 3, row.products, 6e-4) << row.name;
    EXPECT_NEAR(flops.core.value * scale / 3, row.core, 6e-4) << row.name;
    EXPECT_NEAR((flops.products.value + flops.core.value) * scale, row.full, 6e-4) << row.name;
    EXPECT_NEAR((flops.products.value + flops.core.value / 2) * scale, row.half, 6e-4) << row.name;
    EXPECT_NEAR((flops.products.value + flops.core_in_mask.value) * scale, row.exact, 6e-4) << row.name;
    EXPECT_EQ(model_flops_per_sample({.shape = t}, row.seq), flops.products + flops.core) << row.name;
  }
}

TEST(Families, PairsOfAQueryAndAKeyByCounting) {
  for (const std::int64_t seq : {1, 2, 5, 8, 13}) {
    for (std::int64_t reach = 1; reach <= 9; ++reach) {
      Transformer window{.layers = 2}, chunk{.layers = 2};
      window.attention.window = chunk.attention.chunk = reach;
      window.attention.local = chunk.attention.local = {true, false};
      double in_window = 0, in_chunk = 0, causal = 0;
      for (std::int64_t q = 0; q < seq; ++q)
        for (std::int64_t k = 0; k <= q; ++k) {
          in_window += q - k < reach ? 1 : 0, in_chunk += q / reach == k / reach ? 1 : 0;
          ++causal;
        }
      EXPECT_EQ(attention_pairs(window, 0, seq), in_window) << seq << " " << reach;
      EXPECT_EQ(attention_pairs(chunk, 0, seq), in_chunk) << seq << " " << reach;
      EXPECT_EQ(attention_pairs(window, 1, seq), causal);
      EXPECT_EQ(attention_pairs(chunk, 1, seq), causal);
    }
  }
}

TEST(Families, WhatEachLayerIs) {
  const Transformer v3 = shape("deepseek-v3");
  EXPECT_FALSE(has_experts(v3, 2));
  EXPECT_TRUE(has_experts(v3, 3));
  EXPECT_EQ(v3.attention.latent, (LatentAttention{1536, 512, 128, 64, 128}));
  EXPECT_EQ(v3.block.experts.best_of_group, 2);
  EXPECT_EQ(shape("deepseek-v2").block.experts.best_of_group, 1);
  EXPECT_EQ(shape("deepseek-v2-lite").attention.latent.query_rank, 0);
  // yarn: (0.1 ln 40 + 1)^2 / sqrt(192)
  EXPECT_NEAR(v3.attention.scale, std::pow(0.1 * std::log(40.0) + 1, 2) / std::sqrt(192.0), 1e-15);
  const Transformer maverick = shape("llama-4-maverick");
  EXPECT_FALSE(has_experts(maverick, 0));
  EXPECT_TRUE(has_experts(maverick, 1));
  EXPECT_TRUE(attends_locally(maverick, 2));
  EXPECT_FALSE(attends_locally(maverick, 3));
  EXPECT_EQ(maverick.attention.qk_norm, QkNorm::None);
  EXPECT_EQ(shape("llama-4-scout").attention.qk_norm, QkNorm::Unweighted);
  const Transformer oss = shape("gpt-oss-20b");
  EXPECT_TRUE(attends_locally(oss, 0));
  EXPECT_FALSE(attends_locally(oss, 1));
  EXPECT_TRUE(oss.attention.sinks);
  const Transformer gemma = shape("gemma-3-27b");
  EXPECT_TRUE(attends_locally(gemma, 4));
  EXPECT_FALSE(attends_locally(gemma, 5));
  EXPECT_EQ(gemma.attention.rope_theta, 1e6);
  EXPECT_EQ(gemma.attention.local_rope_theta, 1e4);
  EXPECT_EQ(gemma.attention.score_cap, 0);
  EXPECT_NEAR(gemma.attention.scale, 1 / std::sqrt(168.0), 1e-15);
  EXPECT_EQ(shape("gemma-2-9b").attention.score_cap, 50);
  EXPECT_EQ(shape("glm-4.5").attention.rotated_dim, 64);
  EXPECT_EQ(shape("phi-3-mini-4k").attention.window, 2047);
  EXPECT_EQ(shape("phi-4").attention.window, 0);
  EXPECT_FALSE(shape("olmo-2-7b").block.input_norms);
  EXPECT_NEAR(shape("granite-3.3-8b").block.scales.logits, 1 / 16.0, 1e-15);
}

TEST(Families, BothSpellingsOfMovedKeys) {
  const auto renamed = [](const std::string& name, const std::string& from, const std::string& to) {
    std::string text = text_of(name);
    text.replace(text.find("\"" + from + "\""), from.size() + 2, "\"" + to + "\"");
    return std::get<Transformer>(parse_model(text, "config.json").shape);
  };
  EXPECT_EQ(renamed("qwen3-30b-a3b", "num_experts", "num_local_experts"), shape("qwen3-30b-a3b"));
  EXPECT_EQ(renamed("deepseek-v3", "num_nextn_predict_layers", "num_mtp_layers"), shape("deepseek-v3"));
  EXPECT_EQ(renamed("gpt-oss-20b", "num_experts_per_tok", "experts_per_token"), shape("gpt-oss-20b"));
  EXPECT_EQ(message("gpt-oss-20b", "experts_per_token", "3"),
            "config.json: experts_per_token: found 3, expected the same as num_experts_per_tok, 4");
  EXPECT_EQ(with("qwen3-8b", "rope_parameters", R"({"rope_theta": 5})").attention.rope_theta, 5);
  const Transformer gemma =
      with("gemma-3-1b", "rope_parameters", R"({"full_attention": {"rope_theta": 7}, "sliding_attention": {"rope_theta": 8}})");
  EXPECT_EQ(gemma.attention.rope_theta, 7);
  EXPECT_EQ(gemma.attention.local_rope_theta, 8);
  // layer_types in place of a pattern
  std::string kinds;
  for (int i = 0; i < 26; ++i)
    kinds += std::string(i ? ", " : "") + (i % 6 == 5 ? "\"full_attention\"" : "\"sliding_attention\"");
  EXPECT_EQ(with("gemma-3-1b", "layer_types", std::string("[") + kinds + "]"), shape("gemma-3-1b"));
  // A text model on its own is that inside the multimodal wrapper.
  const std::string text = text_of("gemma-3-27b");
  const Transformer own = std::get<Transformer>(parse_model(json_value(text, "text_config", "test"), "config.json").shape);
  EXPECT_EQ(own, shape("gemma-3-27b"));
}

TEST(Families, OursHasEverySetting) {
  for (const std::string& name : shipped("models"))
    EXPECT_EQ(parse_model(to_json(load_model(name)), "other.json").shape, load_model(name).shape) << name;
}

TEST(Families, BadInputsAreRefusedByName) {
  EXPECT_EQ(message("mixtral-8x7b", "num_experts_per_tok", "9"),
            "config.json: num_experts_per_tok: found 9, expected at most the 8 experts");
  EXPECT_EQ(message("deepseek-v3", "n_group", "7"), "config.json: n_group: found 7, expected a divisor of the 256 experts");
  EXPECT_EQ(message("deepseek-v3", "topk_group", "9"),
            "config.json: topk_group: found 9, expected at most the 8 groups of experts");
  EXPECT_EQ(message("deepseek-v3", "num_experts_per_tok", "129"),
            "config.json: num_experts_per_tok: found 129, expected at most 128, the experts of the chosen groups");
  EXPECT_EQ(message("deepseek-v3", "first_k_dense_replace", "61"),
            "config.json: first_k_dense_replace: found 61, expected less than the 61 layers: no layer would have experts");
  EXPECT_EQ(message("deepseek-v3", "q_lora_rank", "0"),
            "config.json: q_lora_rank: found 0, expected null (queries without a latent) or at least 1");
  EXPECT_EQ(message("deepseek-v3", "qk_rope_head_dim", "63"),
            "config.json: qk_rope_head_dim: found 63, expected an even number of at least 2: rotary embeddings "
            "turn pairs");
  EXPECT_EQ(message("gemma-2-9b", "sliding_window", "0"),
            "config.json: sliding_window: found 0, expected an integer from 1 to 1000000000");
  EXPECT_EQ(message("gpt-oss-20b", "layer_types", R"(["full_attention"])"),
            "config.json: layer_types: found an array of 1, expected an array with one entry for each of the 24 layers");
  EXPECT_EQ(
      message("qwen3-30b-a3b", "decoder_sparse_step", "49"),
      "config.json: decoder_sparse_step: found experts, but no layer that has them, expected at least one layer with experts");
  EXPECT_EQ(message("minimax-m2", "rotary_dim", "130").rfind("config.json: rotary_dim: found 130, expected", 0), 0u);
  EXPECT_EQ(message("olmoe-1b-7b", "clip_qkv", "8.0").rfind("config.json: clip_qkv: found 8", 0), 0u);
  EXPECT_EQ(message("qwen3-8b", "num_expert", "3"),
            "config.json: num_expert: found an unknown key with value 3, expected \"num_experts\"");
  EXPECT_NE(message("mixtral-8x7b", "num_local_expert", "3"), "no error");
}

TEST(Families, ThoseWithoutOperatorsAreRefusedWithWhatIsMissing) {
  const auto refusal = [](const std::string& type) {
    return error_of([&] { parse_model("{\"model_type\": \"" + type + "\"}", "config.json"); });
  };
  EXPECT_EQ(
      refusal("qwen3_next"),
      "config.json: model_type: found \"qwen3_next\", expected a supported family: this one has gated delta attention and a "
      "gate on the attention's output (layer_types, attn_output_gate), which nothing here computes");
  for (const char* type : {"deepseek_v32", "glm_moe_dsa", "deepseek_v4", "qwen3_5_moe", "kimi_linear", "nemotron_h",
                           "minimax_m3", "gemma4", "mistral4", "hy_v3", "minimax", "granitemoeshared"}) {
    EXPECT_FALSE(missing_for(type).empty()) << type;
    EXPECT_NE(refusal(type).find(missing_for(type)), std::string::npos) << type;
  }
}

TEST(Families, ShippedModelsHaveOperators) {
  for (const char* name : {"deepseek-v3", "deepseek-v2-lite", "kimi-k2", "qwen3-30b-a3b", "gpt-oss-20b", "mixtral-8x7b",
                           "llama-4-scout", "glm-4.5", "olmoe-1b-7b", "granite-3.1-1b-a400m", "minimax-m2", "phi-4", "qwen3-8b",
                           "gemma-2-9b", "gemma-3-27b", "olmo-2-7b", "granite-3.3-8b", "phi-3-mini-4k"})
    EXPECT_NO_THROW(build_op_graph(load_model(name), {.seq = 4096})) << name;
}

}  // namespace foreshard::family_test
