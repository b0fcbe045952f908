// OLMo 2 and OLMoE: norms of queries and keys over all heads at once, for which the file has no key. OLMo 2 has norms after attention
// and MLP instead of before.
#include "core/family/family_config.h"

namespace foreshard {

static Transformer read_olmo(const FamilyConfig& config) {
  Transformer t = config.decoder();
  t.ffn_hidden = config.size({"intermediate_size"});
  t.activation = config.activation("hidden_act", "silu", true);
  t.qkv_bias = t.projection_bias = config.flag("attention_bias", false);
  t.attention.qk_norm = QkNorm::AllHeads;
  if (config.type() == "olmo2") {
    t.block.input_norms = false;
    t.block.branch_norms = true;
    for (const char* key : {"num_experts", "num_local_experts", "num_experts_per_tok"}) config.off(key);
    return t;
  }
  t.block.experts = config.experts({"num_experts", "num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  t.block.experts.renormalised = config.flag("norm_topk_prob", false);
  t.block.experts.auxiliary_loss = config.number("router_aux_loss_coef", 0.01, 1e6, 0);
  return t;
}

ModelFamily olmo_family() {
  return {.types = {"olmo2", "olmoe"},
          .keys = {"num_experts", "num_local_experts", "num_experts_per_tok", "norm_topk_prob", "router_aux_loss_coef"},
          .read = read_olmo};
}

}  // namespace foreshard
