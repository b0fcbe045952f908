// Gemma 2 and the text model of Gemma 3: norms before and after attention and MLP, with the factor 1 + weight; gated GELU; the
// embedding times sqrt(h). Gemma 2 caps scores and logits; Gemma 3 has norms of queries and keys and five window layers to each full one.
#include <cmath>

#include "core/family/family_config.h"

namespace foreshard {

namespace {

void read_scales(const FamilyConfig& config, Transformer& t) {
  t.block.scales.embedding = std::sqrt(static_cast<double>(t.hidden));
  t.attention.scale = 1 / std::sqrt(config.number("query_pre_attn_scalar", 256, 1e9));
  const bool gemma2 = config.type() == "gemma2";
  // Gemma 3 files may carry the keys of Gemma 2, as null.
  const auto cap = [&](const char* key, double usual) {
    const auto said = config.json().find(key);
    return said && said->is_null() ? 0 : config.number(key, gemma2 ? usual : 0, 1e6);
  };
  t.attention.score_cap = cap("attn_logit_softcapping", 50);
  t.block.scales.logit_cap = cap("final_logit_softcapping", 30);
}

void read_gemma_windows(const FamilyConfig& config, Transformer& t) {
  const bool gemma2 = config.type() == "gemma2";
  t.attention.window = config.size_or({"sliding_window"}, 4096);
  const std::int64_t period = gemma2 ? 2 : config.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  if (const auto listed = config.local_layers(t.layers, "sliding_attention")) {
    t.attention.local = *listed;
  } else {
    for (int i = 0; i < t.layers; ++i) t.attention.local.push_back((i + 1) % period != 0);
  }
}

Transformer read_gemma(const FamilyConfig& config) {
  const bool gemma2 = config.type() == "gemma2";
  Transformer t =
      config.decoder(gemma2 ? UsualSizes{.head_dim = 256}
                            : UsualSizes{.heads = 8, .kv_heads = 4, .head_dim = 256, .vocab = 262208, .positions = 131072},
                     true);
  t.ffn_hidden = config.size({"intermediate_size"});
  for (const char* key : {"hidden_activation", "hidden_act"})
    if (const auto word = config.find(key)) word->as_choice({"gelu_pytorch_tanh", "gelu"});
  t.activation = ActivationKind::GeGlu;
  t.qkv_bias = t.projection_bias = config.flag("attention_bias", false);
  t.block.branch_norms = t.block.norms_around_one = true;
  read_scales(config, t);
  read_gemma_windows(config, t);
  if (!gemma2) {
    t.attention.qk_norm = QkNorm::PerHead;
    t.attention.rope_theta = config.find("rope_parameters") || config.find("rope_theta") ? t.attention.rope_theta : 1e6;
    const bool nested = config.find("rope_parameters").has_value();
    t.attention.local_rope_theta = nested ? config.rope_theta("rope_local_base_freq", "sliding_attention")
                                          : config.number("rope_local_base_freq", 1e4, 1e15);
  }
  return t;
}

}  // namespace

ModelFamily gemma_family() {
  return {.types = {"gemma2", "gemma3_text"},
          .keys = {"hidden_activation", "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping",
                   "layer_types", "sliding_window_pattern", "_sliding_window_pattern", "rope_local_base_freq"},
          .read = read_gemma,
          .wrappers = {"gemma3"}};
}

}  // namespace foreshard
