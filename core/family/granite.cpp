// Granite 3 and its mixtures: Llama's block with four multipliers; the router's softmax is over the chosen experts.
#include "core/family/family_config.h"

namespace foreshard {

static Transformer read_granite(const FamilyConfig& config) {
  Transformer t = config.decoder();
  t.ffn_hidden = config.size({"intermediate_size"});
  t.activation = config.activation("hidden_act", "silu", true);
  t.qkv_bias = t.projection_bias = config.flag("attention_bias", false);
  t.attention.scale = config.number("attention_multiplier", 1, 1e6);
  t.block.scales.embedding = config.number("embedding_multiplier", 1, 1e6);
  t.block.scales.residual = config.number("residual_multiplier", 1, 1e6);
  t.block.scales.logits = 1 / config.number("logits_scaling", 1, 1e6);
  if (config.type() == "granite") {
    t.mlp_bias = config.flag("mlp_bias", false);
    for (const char* key : {"num_local_experts", "num_experts", "num_experts_per_tok"}) config.off(key);
    return t;
  }
  t.block.experts = config.experts({"num_local_experts", "num_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  t.block.experts.score = RouterScore::SoftmaxOfChosen;
  t.block.experts.auxiliary_loss = config.number("router_aux_loss_coef", 0.001, 1e6, 0);
  return t;
}

ModelFamily granite_family() {
  return {.types = {"granite", "granitemoe"},
          .keys = {"attention_multiplier", "embedding_multiplier", "residual_multiplier", "logits_scaling", "num_local_experts",
                   "num_experts", "num_experts_per_tok", "router_aux_loss_coef"},
          .read = read_granite};
}

}  // namespace foreshard
