// Kernels that PyTorch's autograd runs beside the operators of a plan: they add gradients.
#pragma once

#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Bytes that the sum of the gradients of a value moves in addition to an operator that adds to what is there: the operator writes its
// gradient, and a kernel of its own reads and adds two (OpStyles::sums_gradients). 0 where the operator adds to nothing.
Bytes summed_bytes(const FrameworkPreset& preset, const Compute& what);

// Bytes that adding a gradient of weights to the sum over micro-batches moves: it is read in the product's format, the sum is read and
// written (FrameworkPreset::adds_gradients). A sum in the same format begins with the first gradient itself; a wider one begins with zeros,
// to which the first is added too. The gradient of a table of embeddings has all its rows, and is filled with zeros first. 0 for others.
Bytes added_bytes(const FrameworkPreset& preset, const Compute& what, const Instruction& run);

// What the host issues to add the gradients of parameters that `run` makes to their sums (GradientLoop), and whether the ranks of a role
// update shards.
Seconds gradient_loop(const FrameworkPreset& preset, const Compute& what, const Instruction& run, bool shards);
bool updates_shards(const Role& role);

// Bytes of the result that a product or a norm allocates and PyTorch fills with NaN (OpStyles::fills_results): of the forward, a
// recomputation and the gradient of the input. Gradients of weights go to the sum over micro-batches. 0 for others.
Bytes filled_bytes(const FrameworkPreset& preset, const Compute& what);

// Traffic of that operator itself, which then only writes its gradient.
Bytes unadded_traffic(const Compute& what, const Instruction& run);

}  // namespace foreshard
