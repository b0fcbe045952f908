// gpt-oss: a sink logit per head, windows in every second layer, biases everywhere, a clamped SwiGLU, and a softmax over the
// chosen experts only.
#include "core/family/family_config.h"

namespace foreshard {

static Transformer read_gpt_oss(const FamilyConfig& config) {
  Transformer t = config.decoder({.head_dim = 64});
  t.ffn_hidden = config.size({"intermediate_size"});
  config.activation("hidden_act", "silu", true);
  t.activation = ActivationKind::ClampedSwiGlu;
  t.qkv_bias = t.projection_bias = config.flag("attention_bias", true);
  t.attention.sinks = true;
  t.attention.rope_scale = config.rope_scale();
  t.attention.window = config.size_or({"sliding_window"}, 128);
  if (const auto listed = config.local_layers(t.layers, "sliding_attention")) {
    t.attention.local = *listed;
  } else {
    for (int i = 0; i < t.layers; ++i) t.attention.local.push_back(i % 2 == 0);
  }
  Experts& e = t.block.experts;
  e = config.experts({"num_local_experts", "num_experts"}, {"num_experts_per_tok", "experts_per_token"}, {"intermediate_size"});
  e.score = RouterScore::SoftmaxOfChosen;
  e.router_bias = e.biases = true;
  e.auxiliary_loss = config.number("router_aux_loss_coef", 0.9, 1e6, 0);
  return t;
}

ModelFamily gpt_oss_family() {
  return {.types = {"gpt_oss"},
          .keys = {"layer_types", "num_local_experts", "num_experts", "num_experts_per_tok", "experts_per_token",
                   "router_aux_loss_coef"},
          .read = read_gpt_oss};
}

}  // namespace foreshard
