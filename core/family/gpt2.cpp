// GPT-2: learned positions, GELU, the head tied to the token embedding.
#include "core/family/family_config.h"

namespace foreshard {

static Transformer read_gpt2(const FamilyConfig& config) {
  config.need_language_model();
  Transformer t = config.sizes();
  t.ffn_hidden = config.size_or({"n_inner"}, 4 * t.hidden);
  t.activation = config.activation("activation_function", "gelu_new", false);
  t.tied_embeddings = config.flag("tie_word_embeddings", true);
  t.block.norm_eps = config.number("layer_norm_epsilon", 1e-5, 1);
  return t;
}

ModelFamily gpt2_family() {
  return {.types = {"gpt2"},
          .sizes = {.layers = {"n_layer", "num_hidden_layers"},
                    .hidden = {"n_embd", "hidden_size"},
                    .ffn = {"n_inner"},
                    .heads = {"n_head", "num_attention_heads"},
                    .positions = {"n_positions", "max_position_embeddings"}},
          .read = read_gpt2};
}

}  // namespace foreshard
