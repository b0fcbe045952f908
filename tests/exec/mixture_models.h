// Small mixtures of experts, each as a family of today makes them (tests/exec/oracle/mixtures.py has them in PyTorch).
#pragma once

#include "tests/exec/modern_models.h"

namespace foreshard {

// Tiny models of the families: 8 experts of 24 columns, two chosen.
inline const std::vector<ModernModel>& mixtures() {
  const Experts two = {.count = 8, .chosen = 2, .width = 24};
  static const std::vector<ModernModel> all = {
      {"mixtral",
       [=](Transformer& t) {
         t.block.experts = two;
         t.block.experts.renormalised = true;
       }},
      {"olmoe",
       [=](Transformer& t) {
         t.block.experts = two;
         t.block.experts.auxiliary_loss = 0.5;
       }},
      {"deepseek_v3",
       [=](Transformer& t) {
         t.block.experts = two;
         Experts& e = t.block.experts;
         e.shared_width = 32, e.layers = {false, true, true, true}, e.score = RouterScore::Sigmoid;
         e.renormalised = true, e.scale = 2.5, e.groups = 4, e.chosen_groups = 2, e.best_of_group = 2, e.auxiliary_loss = 0.5;
         t.attention.latent = {.query_rank = 24, .key_value_rank = 16, .plain_dim = 8, .rotated_dim = 4, .value_dim = 8};
         t.kv_heads = t.heads;
       }},
      {"gpt_oss_experts",
       [=](Transformer& t) {
         t.block.experts = two;
         Experts& e = t.block.experts;
         e.score = RouterScore::SoftmaxOfChosen, e.router_bias = e.biases = true, e.auxiliary_loss = 0.5;
         t.activation = ActivationKind::ClampedSwiGlu;
       }},
      {"st_moe",
       [=](Transformer& t) {
         t.block.experts = two;
         Experts& e = t.block.experts;
         e.renormalised = true, e.auxiliary_loss = 0.5, e.z_loss = 0.25;
       }},
      {"llama4_experts",
       [=](Transformer& t) {
         t.block.experts = two;
         Experts& e = t.block.experts;
         e.chosen = 1, e.shared_width = 24, e.layers = {false, true}, e.score = RouterScore::Sigmoid, e.scaled_inputs = true;
       }},
  };
  return all;
}

}  // namespace foreshard
