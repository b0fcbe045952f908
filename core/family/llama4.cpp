// Llama 4, its text model: three of four layers attend inside chunks, every fourth to all tokens and without positions; each token
// uses one routed expert, whose input is multiplied by the weight, and one shared expert.
#include "core/family/family_config.h"

namespace foreshard {

namespace {

void read_llama4_experts(const FamilyConfig& config, Transformer& t) {
  Experts& e = t.block.experts;
  e = config.experts({"num_local_experts", "num_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  e.shared_width = e.width;
  e.score = RouterScore::Sigmoid;
  e.scaled_inputs = true;
  e.auxiliary_loss = config.number("router_aux_loss_coef", 0.001, 1e6, 0);
  e.layers.assign(static_cast<std::size_t>(t.layers), false);
  if (const auto listed = config.find("moe_layers")) {
    for (const JsonReader& layer : listed->elements()) e.layers[static_cast<std::size_t>(layer.as_int(0, t.layers - 1))] = true;
  } else {
    const std::int64_t step = config.size_or({"interleave_moe_layer_step"}, 1);
    for (std::int64_t i = step - 1; i < t.layers; i += step) e.layers[static_cast<std::size_t>(i)] = true;
  }
  if (std::vector<bool>(e.layers.size(), true) == e.layers) e.layers.clear();
}

Transformer read_llama4(const FamilyConfig& config) {
  Transformer t = config.decoder({.heads = 40, .kv_heads = 8, .head_dim = 128, .vocab = 202048, .positions = 131072});
  t.ffn_hidden = config.size({"intermediate_size_mlp"});
  t.activation = config.activation("hidden_act", "silu", true);
  t.qkv_bias = t.projection_bias = config.flag("attention_bias", false);
  if (config.flag("use_qk_norm", true)) t.attention.qk_norm = QkNorm::Unweighted;
  t.attention.chunk = config.size_or({"attention_chunk_size"}, 8192);
  t.attention.full_unrotated = true;
  if (const auto listed = config.local_layers(t.layers, "chunked_attention")) {
    t.attention.local = *listed;
  } else {
    for (int i = 0; i < t.layers; ++i) t.attention.local.push_back((i + 1) % 4 != 0);
  }
  read_llama4_experts(config, t);
  return t;
}

}  // namespace

ModelFamily llama4_family() {
  return {.types = {"llama4_text"},
          .keys = {"intermediate_size_mlp", "use_qk_norm", "attention_chunk_size", "layer_types", "num_local_experts",
                   "num_experts", "num_experts_per_tok", "moe_layers", "interleave_moe_layer_step", "router_aux_loss_coef"},
          .read = read_llama4,
          .wrappers = {"llama4"}};
}

}  // namespace foreshard
