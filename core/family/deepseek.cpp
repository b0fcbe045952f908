// DeepSeek-V2 and V3, and models built like V3 (Kimi-K2, Moonlight): latent attention (arXiv:2405.04434, section 2.1); routed experts in
// groups, and shared experts, in the layers from first_k_dense_replace on.
#include <cmath>

#include "core/family/family_config.h"

namespace foreshard {

namespace {

// yarn's mscale_all_dim, squared, multiplies the scores.
double score_scale(const FamilyConfig& config, const LatentAttention& latent) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto scaling = config.find(key);
    if (!scaling || !scaling->is_object() || !scaling->has("mscale_all_dim") || !scaling->has("factor")) continue;
    const double factor = scaling->at("factor").as_double(1e-6, 1e6), all = scaling->at("mscale_all_dim").as_double(0, 1e6);
    if (factor <= 1 || all == 0) continue;
    const double mscale = 0.1 * all * std::log(factor) + 1;
    return mscale * mscale / std::sqrt(static_cast<double>(latent.plain_dim + latent.rotated_dim));
  }
  return 0;
}

LatentAttention read_latent(const FamilyConfig& config) {
  LatentAttention latent;
  if (const auto rank = config.find("q_lora_rank"); rank && rank->is_number() && rank->as_double() == 0)
    rank->fail("null (queries without a latent) or at least 1");
  latent.query_rank = config.size_or({"q_lora_rank"}, 0);
  latent.key_value_rank = config.size({"kv_lora_rank"});
  latent.plain_dim = config.size({"qk_nope_head_dim"});
  latent.rotated_dim = config.size({"qk_rope_head_dim"});
  latent.value_dim = config.size({"v_head_dim"});
  return latent;
}

void read_groups(const FamilyConfig& config, bool v3, Experts& e) {
  const std::string usual = v3 ? "noaux_tc" : "greedy";
  const auto said = config.find("topk_method");
  const std::string method = said ? said->as_choice(v3 ? Names{"noaux_tc"} : Names{"greedy", "group_limited_greedy"}) : usual;
  if (method == "greedy") return;
  e.groups = config.size_or({"n_group"}, 1);
  e.chosen_groups = config.size_or({"topk_group"}, 1);
  if (e.count % e.groups != 0) config.find("n_group")->fail("a divisor of the " + std::to_string(e.count) + " experts");
  if (e.chosen_groups > e.groups)
    config.find("topk_group")->fail("at most the " + std::to_string(e.groups) + " groups of experts");
  e.best_of_group = v3 && e.count / e.groups > 1 ? 2 : 1;
}

void read_deepseek_experts(const FamilyConfig& config, Transformer& t) {
  const bool v3 = config.type() != "deepseek_v2";
  Experts& e = t.block.experts;
  e = config.experts({"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  e.shared_width = config.size_or({"n_shared_experts"}, 0, 0) * e.width;
  e.score = v3 ? RouterScore::Sigmoid : RouterScore::Softmax;
  if (const auto score = config.find("scoring_func")) score->as_choice({v3 ? "sigmoid" : "softmax"});
  e.renormalised = v3 && config.flag("norm_topk_prob", true);  // transformers' V2 ignores the key
  e.scale = config.number("routed_scaling_factor", v3 ? 2.5 : 1, 1e6);
  e.correction_bias = v3;
  e.auxiliary_loss = config.number("aux_loss_alpha", 0.001, 1e6, 0);
  read_groups(config, v3, e);
  if (const auto step = config.find("moe_layer_freq"); step && step->as_int(1) != 1) FamilyConfig::refuse(*step, "1");
  const std::int64_t dense = config.size_or({"first_k_dense_replace"}, v3 ? 3 : 0, 0);
  if (dense >= t.layers)
    config.find("first_k_dense_replace")
        ->fail("less than the " + std::to_string(t.layers) + " layers: no layer would have experts");
  for (int i = 0; dense > 0 && i < t.layers; ++i) e.layers.push_back(i >= dense);
}

Transformer read_deepseek(const FamilyConfig& config) {
  Transformer t = config.decoder({.head_dim = 2});
  t.ffn_hidden = config.size({"intermediate_size"});
  t.activation = config.activation("hidden_act", "silu", true);
  t.qkv_bias = t.projection_bias = config.flag("attention_bias", false);
  t.attention.latent = read_latent(config);
  // head_dim and num_key_value_heads of these files are ignored: every head has keys and values of its own.
  t.kv_heads = t.heads;
  t.head_dim = t.attention.latent.plain_dim + t.attention.latent.rotated_dim;
  t.attention.scale = score_scale(config, t.attention.latent);
  read_deepseek_experts(config, t);
  t.block.mtp_modules = static_cast<int>(config.size_or({"num_nextn_predict_layers", "num_mtp_layers"}, 0, 0));
  return t;
}

}  // namespace

ModelFamily deepseek_family() {
  return {.types = {"deepseek_v2", "deepseek_v3", "kimi_k2"},
          .keys = {"q_lora_rank",
                   "kv_lora_rank",
                   "qk_nope_head_dim",
                   "qk_rope_head_dim",
                   "v_head_dim",
                   "n_routed_experts",
                   "num_experts_per_tok",
                   "moe_intermediate_size",
                   "n_shared_experts",
                   "scoring_func",
                   "norm_topk_prob",
                   "routed_scaling_factor",
                   "topk_method",
                   "n_group",
                   "topk_group",
                   "moe_layer_freq",
                   "first_k_dense_replace",
                   "num_nextn_predict_layers",
                   "num_mtp_layers",
                   "aux_loss_alpha"},
          .read = read_deepseek};
}

}  // namespace foreshard
