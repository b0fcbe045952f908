// A measured run of a model with experts: which model it is, and how the ranks share its experts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "validation/measured.h"
#include "validation/measured_case.h"

namespace foreshard {

// The shipped model with the name, the layers and the hidden size of the row; "(w/o MTP)" behind the name takes its modules for multi-token
// prediction away. None: no model is called so.
std::optional<Model> shipped_model(const MeasuredRow& row);

// Gives `dense`, the model of the columns, the experts and the modules for multi-token prediction that framework_flags states, in Megatron's
// words. Why that is not possible, otherwise.
std::optional<SkipReason> add_stated_experts(const MeasuredRow& row, Model& dense);

// ep, etp and the capacity of experts; `strategy` has its other degrees. Adds to `assumed` what the row does not state.
std::optional<SkipReason> set_experts(const MeasuredRow& row, Strategy& strategy, std::vector<std::string>& assumed);

// Megatron's modules: core_attn, layernorm, mla_up_proj, moe_act. Other cells: nothing.
std::optional<Recompute> recompute_of_modules(const MeasuredRow& row);

// Layers of every stage where they do not divide the stages, as the recipes of Megatron-Bridge split 61 of them (scripts/performance
// deepseek_llm_pretrain.py, "Et|(tt|)*30mL"; recipes/deepseek/deepseek_v3.py): "4x15,1" and "1,2x30,0". Empty: they divide.
std::string recipe_split(int layers, int stages);

}  // namespace foreshard
