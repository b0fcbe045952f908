// config.json files of the supported families, as they are found in the wild, and the keys that are refused.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/model/model.h"

namespace foreshard::family_config_test {

static Model parse(const std::string& text) { return parse_model(text, "config.json"); }
static Transformer shape(const std::string& text) { return std::get<Transformer>(parse(text).shape); }

static std::string message(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// A small config of a family with more keys at its end.
static std::string gpt2(const std::string& more) {
  return R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "n_positions": 16, "vocab_size": 10)" + more + "}";
}
static std::string common(const std::string& type, const std::string& more) {
  return "{\"model_type\": \"" + type +
         R"(", "num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 4,)"
         R"( "max_position_embeddings": 16, "vocab_size": 10)" +
         more + "}";
}

TEST(HuggingFace, Gpt2WithItsNeutralKeys) {
  const Model model = parse(R"({
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
    "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_inner": null, "n_layer": 12,
    "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
    "summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
    "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "torch_dtype": "float32",
    "transformers_version": "4.40.0", "_name_or_path": "gpt2", "use_cache": true, "vocab_size": 50257})");
  EXPECT_EQ(parameter_count(model), 124'439'808);
  EXPECT_EQ(std::get<Transformer>(model.shape), std::get<Transformer>(load_model("gpt2-124m").shape));
}

TEST(HuggingFace, Gpt2TakesTheAliasesOfItsConfigurationClass) {
  EXPECT_EQ(shape(R"({"model_type": "gpt2", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2,
                      "max_position_embeddings": 16, "vocab_size": 10})"),
            shape(gpt2("")));
  EXPECT_EQ(message(gpt2(R"(, "hidden_size": 9)")), "config.json: hidden_size: found 9, expected the same as n_embd, 8");
  EXPECT_EQ(shape(gpt2(R"(, "n_inner": 20)")).ffn_hidden, 20);
}

TEST(HuggingFace, Mistral) {
  // 32 (4096 (4096 + 2 * 1024) + 4096^2 + 3 * 4096 * 14336 + 2 * 4096) + 2 * 32000 * 4096 + 4096
  const std::string config = R"({"architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
    "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
    "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "sliding_window": null,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 32000})";
  EXPECT_EQ(parameter_count(parse(config)), 7'241'732'096);
  std::string windowed = config;
  windowed.replace(windowed.find("null"), 4, "4096");
  EXPECT_EQ(message(windowed),
            "config.json: sliding_window: found 4096, expected null or at least the 32768 positions: anything else changes "
            "the network in a way that is not supported");
  windowed.replace(windowed.find("\"sliding_window\": 4096"), 22, "\"sliding_window\": 32768");
  EXPECT_EQ(parse(windowed), parse(config));
}

TEST(HuggingFace, Qwen2HasAQkvBiasOnly) {
  // Qwen2.5-0.5B: 24 (896 (896 + 256) + 1152 + 896^2 + 3 * 896 * 4864 + 2 * 896) + 151936 * 896 (tied) + 896
  const Model model = parse(R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu",
    "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864, "max_position_embeddings": 32768,
    "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
    "tie_word_embeddings": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936})");
  EXPECT_EQ(parameter_count(model), 494'032'768);
}

TEST(HuggingFace, LlamaWithTiedEmbeddingsAndScaledRope) {
  // Llama-3.2-1B: 16 (2048 (2048 + 1024) + 2048^2 + 3 * 2048 * 8192 + 2 * 2048) + 128256 * 2048 + 2048
  const Model model = parse(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "head_dim": 64,
    "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 8192, "max_position_embeddings": 131072,
    "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
    "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 32.0, "rope_type": "llama3"}, "rope_theta": 500000.0, "tie_word_embeddings": true,
    "vocab_size": 128256})");
  EXPECT_EQ(parameter_count(model), 1'235'814'400);
}

TEST(HuggingFace, LlamaBiasesAndDefaults) {
  const Transformer plain = shape(common("llama", ""));
  EXPECT_EQ(plain.kv_heads, 4);
  EXPECT_EQ(plain.head_dim, 2);
  EXPECT_EQ(plain.attention.rope_theta, 10000.0);
  EXPECT_FALSE(plain.qkv_bias || plain.projection_bias || plain.mlp_bias || plain.tied_embeddings);
  EXPECT_EQ(plain, shape(common("llama", R"(, "num_key_value_heads": null, "head_dim": null, "num_experts": 0)")));
  const Transformer biased = shape(common("llama", R"(, "attention_bias": true, "mlp_bias": true)"));
  EXPECT_TRUE(biased.qkv_bias && biased.projection_bias && biased.mlp_bias);
  EXPECT_EQ(shape(common("llama", R"(, "head_dim": 6)")).head_dim, 6);
  EXPECT_EQ(shape(common("llama", R"(, "rope_parameters": {"rope_theta": 5e5})")).attention.rope_theta, 5e5);
}

TEST(HuggingFace, GptNeoxOnlyWithASerialResidual) {
  EXPECT_EQ(message(common("gpt_neox", "")),
            "config.json: use_parallel_residual: found true (the default), expected false: attention and MLP side by side "
            "are not supported");
  const Model model = parse(common("gpt_neox", R"(, "use_parallel_residual": false, "rotary_pct": 0.25)"));
  // 2 layers of 4 * 64 + 4 * 8 (attention) + 2 * 96 + 12 + 8 (MLP) + 32 (norms), 2 * 80 (untied tables), 16
  EXPECT_EQ(parameter_count(model), 2 * (288 + 212 + 32) + 160 + 16);
}

TEST(HuggingFace, BertHeadsFollowFromTheArchitecture) {
  const auto count = [](const std::string& more) { return parameter_count(parse(common("bert", more))); };
  // Tables (10 + 16 + 2) * 8 + 16; 2 layers of 4 * 64 + 32 + 2 * 96 + 20 + 32; language head 64 + 8 + 16 + 10.
  const std::int64_t masked = 224 + 16 + 2 * 532 + 98;
  const std::int64_t pooler_and_next_sentence = 64 + 8 + 16 + 2;
  EXPECT_EQ(count(R"(, "architectures": ["BertForMaskedLM"])"), masked);
  EXPECT_EQ(count(R"(, "architectures": ["BertForPreTraining"])"), masked + pooler_and_next_sentence);
  EXPECT_EQ(count(R"(, "architectures": ["BertModel"])"), masked + pooler_and_next_sentence);
  EXPECT_EQ(count(""), masked + pooler_and_next_sentence);
  EXPECT_EQ(count(R"(, "architectures": ["BertForMaskedLM"], "tie_word_embeddings": false)"), masked + 80);
  EXPECT_EQ(count(R"(, "architectures": ["BertForMaskedLM"], "type_vocab_size": 0)"), masked - 16);
}

TEST(HuggingFace, KeysThatChangeTheNetworkAreRefusedByName) {
  const std::string tail = ": anything else changes the network in a way that is not supported";
  EXPECT_EQ(message(common("llama", R"(, "num_local_experts": 8)")),
            "config.json: num_local_experts: found 8, expected null, false or 0" + tail);
  EXPECT_EQ(message(common("llama", R"(, "q_lora_rank": 1536)")),
            "config.json: q_lora_rank: found 1536, expected null, false or 0" + tail);
  EXPECT_EQ(message(common("bert", R"(, "pruned_heads": {"0": [1]})")),
            "config.json: pruned_heads: found an object of 1, expected null, false or 0" + tail);
  EXPECT_EQ(message(common("qwen2", R"(, "layer_types": ["full_attention", "sliding_attention"])")),
            "config.json: layer_types[1]: found \"sliding_attention\", expected \"full_attention\"" + tail);
  EXPECT_EQ(message(common("bert", R"(, "is_decoder": true)")), "config.json: is_decoder: found true, expected false" + tail);
  EXPECT_EQ(message(common("bert", R"(, "position_embedding_type": "relative_key")")),
            "config.json: position_embedding_type: found \"relative_key\", expected \"absolute\"" + tail);
  EXPECT_EQ(message(common("bert", R"(, "architectures": ["BertForQuestionAnswering"])")),
            "config.json: architectures[0]: found \"BertForQuestionAnswering\", expected \"BertForPreTraining\", "
            "\"BertForMaskedLM\" or \"BertModel\"" +
                tail);
  EXPECT_EQ(message(common("llama", R"(, "architectures": ["LlamaForSequenceClassification"])")),
            "config.json: architectures[0]: found \"LlamaForSequenceClassification\", expected a causal language model "
            "(\"...ForCausalLM\", \"...LMHeadModel\")" +
                tail);
  EXPECT_NE(message(gpt2(R"(, "architectures": ["GPT2DoubleHeadsModel"])")), "no error");
  EXPECT_EQ(message(common("llama", R"(, "hidden_act": "gelu")")),
            "config.json: hidden_act: found \"gelu\", expected \"silu\": the gated activation must be SwiGLU");
  EXPECT_EQ(message(gpt2(R"(, "activation_function": "silu")")),
            "config.json: activation_function: found \"silu\", expected \"gelu\", one of its approximations (\"gelu_new\", "
            "\"gelu_fast\", ...), or \"relu\"");
}

TEST(HuggingFace, OtherFamiliesAreRefusedByName) {
  const std::string opt = message(common("opt", ""));
  EXPECT_EQ(opt.rfind("config.json: model_type: found \"opt\", expected one of \"gpt2\", \"llama\", \"mistral\"", 0), 0u)
      << opt;
  EXPECT_NE(message(common("mixtra", "")).find("(nearest: \"mixtral\")"), std::string::npos);
  EXPECT_EQ(message("{}"), "config.json: model_type: found nothing, expected a value for this key");
  EXPECT_EQ(message("[]"), "config.json: found an array of 0, expected an object: a Hugging Face config.json or a layer list");
}

TEST(HuggingFace, SizesAreChecked) {
  EXPECT_EQ(message(R"({"model_type": "gpt2", "n_embd": 8})"),
            "config.json: n_layer: found nothing, expected a value for this key");
  EXPECT_EQ(message(common("llama", R"(, "num_key_value_heads": 3)")),
            "config.json: num_key_value_heads: found 3, expected a divisor of the 4 heads");
  EXPECT_EQ(message(common("llama", R"(, "num_key_value_heads": 0)")),
            "config.json: num_key_value_heads: found 0, expected an integer from 1 to 1000000000");
  EXPECT_EQ(message(common("llama", R"(, "head_dim": 3)")),
            "config.json: head_dim: found 3, expected an even number: rotary embeddings turn pairs");
  EXPECT_EQ(message(common("llama", R"(, "rms_norm_eps": -1)")).substr(0, 40), "config.json: rms_norm_eps: found -1, exp");
  EXPECT_EQ(message(common("llama", R"(, "attention_bias": 1)")),
            "config.json: attention_bias: found 1, expected true or false");
  const auto with = [](const std::string& key, const std::string& value) {
    std::string text = gpt2("");
    const auto at = text.find("\"" + key + "\": ") + key.size() + 4;
    return message(text.replace(at, text.find_first_of(",}", at) - at, value));
  };
  EXPECT_EQ(with("n_layer", "0"), "config.json: n_layer: found 0, expected an integer from 1 to 100000");
  EXPECT_EQ(with("n_layer", "100001"), "config.json: n_layer: found 100001, expected an integer from 1 to 100000");
  EXPECT_EQ(with("n_embd", "-8"), "config.json: n_embd: found -8, expected an integer from 1 to 1000000000");
  EXPECT_EQ(with("n_embd", "\"8\""), "config.json: n_embd: found \"8\", expected an integer from 1 to 1000000000");
  EXPECT_EQ(with("n_head", "3"), "config.json: n_head: found 3, expected a divisor of the hidden size 8");
  EXPECT_EQ(with("vocab_size", "1.5"), "config.json: vocab_size: found 1.5, expected an integer from 1 to 1000000000");
  EXPECT_EQ(with("n_positions", "null"), "config.json: n_positions: found null, expected an integer from 1 to 1000000000");
  EXPECT_EQ(with("n_embd", "1000000000"), "config.json: found a model of about 2.4e+19 parameters, expected at most 1e16");
}

TEST(HuggingFace, AMisspeltSizeIsNotTakenForANeutralKey) {
  EXPECT_EQ(message(common("llama", R"(, "num_key_value_head": 2)")),
            "config.json: num_key_value_head: found an unknown key with value 2, expected \"num_key_value_heads\"");
  EXPECT_EQ(message(gpt2(R"(, "n_layers": 3)")),
            "config.json: n_layers: found an unknown key with value 3, expected \"n_layer\"");
  EXPECT_NO_THROW(parse(gpt2(R"(, "made_up_by_somebody": 3)")));
}

}  // namespace foreshard::family_config_test
