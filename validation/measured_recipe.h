// What a row leaves open and the launcher of its framework sets: the recipes of Megatron-Bridge by release, model and GPU.
#pragma once

#include <optional>
#include <string>

#include "core/strategy/strategy.h"
#include "validation/measured.h"
#include "validation/measured_case.h"

namespace foreshard {

struct Recipe {
  bool once = false;  // DeepEP or HybridEP: a token is sent once to each rank, or to each node where the group spans several
  bool overlaps = false;        // all-to-alls of one micro-batch overlap computes of another
  bool narrow_moments = false;  // moments in bf16
  std::string variant = {};     // suffix of the preset's name: "-graphs", "-unfused"; empty: none
  Recompute recompute = {};
  int host_layers = 0;  // activations of so many layers lie in host memory
};

// Of a row of a dense Llama 3, or of a model with experts. None: another framework, or a release that the table does not have.
std::optional<Recipe> recipe_of(const MeasuredRow& row);

// The dispatcher of a recipe that sends tokens once, for groups of `ranks` ranks on nodes of `gpus`.
Dispatcher once_dispatcher(int ranks, int gpus);

// The row, with what its recipe keeps in host memory if it states nothing about that.
MeasuredRow with_host_memory(MeasuredRow row);

// Sets what the recipe says where the row does not: the dispatcher of the experts, recomputation, overlap. Rows without a recipe may state a
// dispatcher that sends tokens once, or the overlap, among their flags.
void follow_recipe(const MeasuredRow& row, MeasuredCase& question);

}  // namespace foreshard
