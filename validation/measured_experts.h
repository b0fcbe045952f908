// Reads from a measured row of a model with experts which model it is and how the ranks share its experts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "validation/measured.h"
#include "validation/measured_case.h"

namespace foreshard {

// The shipped model with the name, the layers and the hidden size of the row, and the row's sequence length. With "(w/o MTP)" in
// the name it has no modules for multi-token prediction. None: no shipped model matches.
std::optional<Model> shipped_model(const MeasuredRow& row);

// Adds to `dense`, the model that the columns describe, the experts and the modules for multi-token prediction that Megatron's
// options in framework_flags state. Returns a reason when that is not possible, otherwise nothing.
std::optional<SkipReason> add_stated_experts(const MeasuredRow& row, Model& dense);

// Sets ep, etp and the capacity of the experts in `strategy`, whose other degrees are set. Adds to `assumed` what the row does not
// state. Returns a reason when that is not possible, otherwise nothing.
std::optional<SkipReason> set_experts(const MeasuredRow& row, Strategy& strategy, std::vector<std::string>& assumed);

// The recomputation of a cell that lists modules by Megatron's names: core_attn, layernorm, mla_up_proj, moe_act, and
// mlp in models without experts. Nothing for other cells.
std::optional<Recompute> recompute_of_modules(const MeasuredRow& row, bool experts);

// The layers of each stage where `layers` is no multiple of `stages`, as the recipes of Megatron-Bridge split 61 layers:
// "4x15,1" and "1,2x30,0" (scripts/performance deepseek_llm_pretrain.py, "Et|(tt|)*30mL"; recipes/deepseek/deepseek_v3.py).
// Empty: a multiple, or no such split.
std::string recipe_split(int layers, int stages);

}  // namespace foreshard
