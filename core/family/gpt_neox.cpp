// GPT-NeoX with sequential (not parallel) attention and MLP.
#include "core/base/error.h"
#include "core/family/family_config.h"

namespace foreshard {

static Transformer read_gpt_neox(const FamilyConfig& config) {
  config.need_language_model();
  if (config.flag("use_parallel_residual", true))
    throw Error(config.json().file(), "use_parallel_residual", "true (the default)",
                "false: attention and MLP side by side are not supported");
  Transformer t = config.sizes();
  t.ffn_hidden = config.size({"intermediate_size"});
  t.activation = config.activation("hidden_act", "gelu", false);
  t.block.norm_eps = config.number("layer_norm_eps", 1e-5, 1);
  t.positions = PositionKind::Rope;
  t.attention.rope_theta = config.rope_theta("rotary_emb_base");
  t.qkv_bias = t.projection_bias = config.flag("attention_bias", true);
  t.tied_embeddings = config.flag("tie_word_embeddings", false);
  return t;
}

ModelFamily gpt_neox_family() { return {.types = {"gpt_neox"}, .read = read_gpt_neox}; }

}  // namespace foreshard
