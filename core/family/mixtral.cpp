// Mixtral: Mistral's attention, experts in every layer, weights of the chosen renormalised.
#include "core/family/family_config.h"

namespace foreshard {

static Transformer read_mixtral(const FamilyConfig& config) {
  Transformer t = config.decoder();
  t.ffn_hidden = config.size({"intermediate_size"});
  t.activation = config.activation("hidden_act", "silu", true);
  t.block.experts = config.experts({"num_local_experts", "num_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  t.block.experts.renormalised = true;
  t.block.experts.auxiliary_loss = config.number("router_aux_loss_coef", 0.001, 1e6, 0);
  config.refuse_sliding_window(t.max_positions, true);
  return t;
}

ModelFamily mixtral_family() {
  return {.types = {"mixtral"},
          .keys = {"num_local_experts", "num_experts", "num_experts_per_tok", "router_aux_loss_coef"},
          .read = read_mixtral};
}

}  // namespace foreshard
