// llama, mistral and qwen2 differ in their biases and in the sliding window.
#include "core/family/family_config.h"

namespace foreshard {

static Transformer read_llama(const FamilyConfig& config) {
  const std::string& type = config.type();
  Transformer t = config.decoder();
  t.ffn_hidden = config.size({"intermediate_size"});
  t.activation = config.activation("hidden_act", "silu", true);
  t.qkv_bias = type == "qwen2" || (type == "llama" && config.flag("attention_bias", false));
  t.projection_bias = type == "llama" && t.qkv_bias;
  t.mlp_bias = type == "llama" && config.flag("mlp_bias", false);
  config.refuse_sliding_window(t.max_positions, type != "qwen2");
  return t;
}

ModelFamily llama_family() { return {.types = {"llama", "mistral", "qwen2"}, .read = read_llama}; }

}  // namespace foreshard
