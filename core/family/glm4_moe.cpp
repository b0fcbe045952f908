// GLM-4.5: DeepSeek-V3's router over grouped-query attention that rotates half of each head.
#include "core/family/family_config.h"

namespace foreshard {

namespace {

void read_glm4_moe_experts(const FamilyConfig& config, Transformer& t) {
  Experts& e = t.block.experts;
  e = config.experts({"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  e.shared_width = config.size_or({"n_shared_experts"}, 1, 0) * e.width;
  e.score = RouterScore::Sigmoid;
  e.correction_bias = true;
  e.renormalised = config.flag("norm_topk_prob", true);
  e.scale = config.number("routed_scaling_factor", 1, 1e6);
  e.groups = config.size_or({"n_group"}, 1);
  e.chosen_groups = config.size_or({"topk_group"}, 1);
  if (e.count % e.groups != 0) config.find("n_group")->fail("a divisor of the " + std::to_string(e.count) + " experts");
  if (e.chosen_groups > e.groups)
    config.find("topk_group")->fail("at most the " + std::to_string(e.groups) + " groups of experts");
  e.best_of_group = e.count / e.groups > 1 ? 2 : 1;
  const std::int64_t dense = config.size_or({"first_k_dense_replace"}, 1, 0);
  if (dense >= t.layers)
    config.json()
        .at("first_k_dense_replace")
        .fail("less than the " + std::to_string(t.layers) + " layers: no layer would have experts");
  for (int i = 0; dense > 0 && i < t.layers; ++i) e.layers.push_back(i >= dense);
}

Transformer read_glm4_moe(const FamilyConfig& config) {
  Transformer t = config.decoder({.head_dim = 128});
  t.ffn_hidden = config.size({"intermediate_size"});
  t.activation = config.activation("hidden_act", "silu", true);
  t.qkv_bias = config.flag("attention_bias", false);  // the output projection has none
  if (config.flag("use_qk_norm", false)) t.attention.qk_norm = QkNorm::PerHead;
  t.attention.rotated_dim = config.rotated_dim(t.head_dim, 0.5);
  read_glm4_moe_experts(config, t);
  t.block.mtp_modules = static_cast<int>(config.size_or({"num_nextn_predict_layers", "num_mtp_layers"}, 0, 0));
  return t;
}

}  // namespace

ModelFamily glm4_moe_family() {
  return {.types = {"glm4_moe"},
          .keys = {"use_qk_norm", "partial_rotary_factor", "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
                   "n_shared_experts", "norm_topk_prob", "routed_scaling_factor", "n_group", "topk_group",
                   "first_k_dense_replace", "num_nextn_predict_layers", "num_mtp_layers"},
          .read = read_glm4_moe};
}

}  // namespace foreshard
