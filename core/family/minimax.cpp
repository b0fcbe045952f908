// MiniMax-M2: norms of queries and keys over all heads, rotation of half of each head, sigmoid scores with a correction bias. Its
// modules for multi-token prediction (use_mtp) were not published and are left out.
#include "core/family/family_config.h"

namespace foreshard {

static Transformer read_minimax(const FamilyConfig& config) {
  Transformer t = config.decoder({.head_dim = 128});
  t.ffn_hidden = config.size({"intermediate_size"});
  t.activation = config.activation("hidden_act", "silu", true);
  if (const auto kind = config.find("qk_norm_type")) kind->as_choice({"per_layer"});
  if (config.flag("use_qk_norm", true)) t.attention.qk_norm = QkNorm::AllHeads;
  t.attention.rotated_dim = config.size_or({"rotary_dim"}, 64);
  if (t.attention.rotated_dim == t.head_dim) t.attention.rotated_dim = 0;
  Experts& e = t.block.experts;
  e = config.experts({"num_local_experts", "num_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  if (const auto score = config.find("scoring_func")) score->as_choice({"sigmoid"});
  e.score = RouterScore::Sigmoid;
  e.renormalised = true;
  e.correction_bias = config.flag("use_routing_bias", true);
  e.shared_width = config.size_or({"shared_intermediate_size"}, 0, 0);
  e.auxiliary_loss = config.number("router_aux_loss_coef", 0.001, 1e6, 0);
  return t;
}

ModelFamily minimax_family() {
  return {.types = {"minimax_m2"},
          .keys = {"use_qk_norm", "qk_norm_type", "rotary_dim", "num_local_experts", "num_experts", "num_experts_per_tok",
                   "scoring_func", "use_routing_bias", "shared_intermediate_size", "router_aux_loss_coef"},
          .read = read_minimax};
}

}  // namespace foreshard
