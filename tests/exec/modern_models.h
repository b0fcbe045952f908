// Small models with what transformers of today have beyond plain attention: tiny models of the families, with dense MLPs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "tests/core/support_models.h"

namespace foreshard {

// Grouped queries, RMSNorm, SwiGLU, rotary positions; heads 4, kv_heads 2, head_dim 8 on hidden size 32, four layers.
inline Transformer tiny_decoder() {
  Transformer decoder = std::get<Transformer>(llama(4, 32, 48, 4, 2, 128).shape);
  decoder.max_positions = 16;
  return decoder;
}

struct ModernModel {
  std::string name = {};
  std::function<void(Transformer&)> with = {};
};

// Caps are so small that they bend the scores and logits of models that were just made.
inline const std::vector<ModernModel>& modern_models() {
  static const std::vector<ModernModel> all = {
      {"qwen3", [](Transformer& t) { t.attention.qk_norm = QkNorm::PerHead; }},
      {"olmo2",
       [](Transformer& t) {
         t.attention.qk_norm = QkNorm::AllHeads;
         t.block.input_norms = false, t.block.branch_norms = true;
       }},
      {"gemma2",
       [](Transformer& t) {
         t.attention.window = 6, t.attention.local = {true, false};
         t.attention.scale = 0.5, t.attention.score_cap = 0.1;
         t.block.branch_norms = t.block.norms_around_one = true;
         t.block.scales = {.embedding = 8, .logit_cap = 0.3};
         t.activation = ActivationKind::GeGlu, t.tied_embeddings = true;
       }},
      {"gemma3",
       [](Transformer& t) {
         t.attention.window = 5, t.attention.local = {true, true, false};
         t.attention.local_rope_theta = 100, t.attention.rope_theta = 1e6;
         t.attention.qk_norm = QkNorm::PerHead;
         t.block.branch_norms = t.block.norms_around_one = true;
         t.block.scales.embedding = 8;
         t.activation = ActivationKind::GeGlu;
       }},
      {"gpt_oss",
       [](Transformer& t) {
         t.attention.window = 6, t.attention.local = {true, false};
         t.attention.sinks = true;
         t.qkv_bias = t.projection_bias = t.mlp_bias = true;
         t.activation = ActivationKind::ClampedSwiGlu;
       }},
      {"llama4",
       [](Transformer& t) {
         t.attention.chunk = 8, t.attention.local = {true, false};
         t.attention.qk_norm = QkNorm::Unweighted, t.attention.full_unrotated = true;
       }},
      {"glm4",
       [](Transformer& t) {
         t.attention.rotated_dim = 4, t.attention.qk_norm = QkNorm::PerHead;
         t.qkv_bias = true;
       }},
      {"granite",
       [](Transformer& t) {
         t.attention.scale = 0.3, t.tied_embeddings = true;
         t.block.scales = {.embedding = 3, .residual = 0.22, .logits = 0.25};
       }},
      {"deepseek",
       [](Transformer& t) {
         t.kv_heads = t.heads;
         t.attention.latent = {.query_rank = 24, .key_value_rank = 16, .plain_dim = 6, .rotated_dim = 4, .value_dim = 8};
       }},
      {"deepseek_lite", [](Transformer& t) {
         t.kv_heads = t.heads;
         t.attention.latent = {.key_value_rank = 16, .plain_dim = 8, .rotated_dim = 4, .value_dim = 6};
       }}};
  return all;
}

inline Model modern_model(const ModernModel& which) {
  Transformer t = tiny_decoder();
  which.with(t);
  return {.name = "tiny-" + which.name, .shape = t};
}

}  // namespace foreshard
