// Qwen3: an RMSNorm over each query and key head, for which the file has no key. Qwen3-MoE has experts in every
// decoder_sparse_step-th layer, except those in mlp_only_layers.
#include "core/family/family_config.h"

namespace foreshard {

namespace {

const Names kExperts = {"num_experts", "num_local_experts"};

// Windows only if use_sliding_window, and then in layers from max_window_layers on.
void read_qwen3_windows(const FamilyConfig& config, Transformer& t) {
  const auto listed = config.local_layers(t.layers, "sliding_attention");
  const auto window = config.find("sliding_window");
  if (!config.flag("use_sliding_window", false) || !window) {
    if (listed && std::vector<bool>(listed->size(), false) != *listed)
      config.find("layer_types")->fail("\"full_attention\" in all layers, as no sliding_window is used");
    return;
  }
  const std::int64_t width = window->as_int(1, 1'000'000'000);
  const std::int64_t first = config.size_or({"max_window_layers"}, 28, 0);
  std::vector<bool> local;
  for (int i = 0; i < t.layers; ++i) local.push_back(i >= first);
  if (listed) local = *listed;
  if (local == std::vector<bool>(local.size(), false)) return;
  t.attention.window = width;
  t.attention.local = local;
}

void read_qwen3_experts(const FamilyConfig& config, Transformer& t) {
  Experts& e = t.block.experts;
  e = config.experts(kExperts, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  e.renormalised = config.flag("norm_topk_prob", false);
  e.auxiliary_loss = config.number("router_aux_loss_coef", 0.001, 1e6, 0);
  const std::int64_t step = config.size_or({"decoder_sparse_step"}, 1);
  e.layers.assign(static_cast<std::size_t>(t.layers), false);
  for (int i = 0; i < t.layers; ++i) e.layers[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
  if (const auto dense = config.find("mlp_only_layers"))
    for (const JsonReader& layer : dense->elements()) e.layers[static_cast<std::size_t>(layer.as_int(0, t.layers - 1))] = false;
  if (std::vector<bool>(e.layers.size(), true) == e.layers) e.layers.clear();
}

Transformer read_qwen3(const FamilyConfig& config) {
  Transformer t = config.decoder({.head_dim = 128});
  t.ffn_hidden = config.size({"intermediate_size"});
  t.activation = config.activation("hidden_act", "silu", true);
  t.qkv_bias = t.projection_bias = config.flag("attention_bias", false);
  t.attention.qk_norm = QkNorm::PerHead;
  read_qwen3_windows(config, t);
  if (config.type() == "qwen3_moe") read_qwen3_experts(config, t);
  return t;
}

}  // namespace

ModelFamily qwen3_family() {
  return {.types = {"qwen3", "qwen3_moe"},
          .keys = {"max_window_layers", "layer_types", "num_experts", "num_local_experts", "num_experts_per_tok",
                   "moe_intermediate_size", "norm_topk_prob", "router_aux_loss_coef", "decoder_sparse_step", "mlp_only_layers"},
          .read = read_qwen3};
}

}  // namespace foreshard
