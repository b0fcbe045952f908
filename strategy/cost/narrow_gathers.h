// Gathers of sequence parallelism in 8 bits. Where every reader of a gathered tensor is an 8-bit product, Transformer Engine and torchao quantise
// each rank's part before they gather it: inputs of column-parallel products (in the backward once more for the gradients of the weights), and
// gradients of the results of row-parallel ones (docs/cost-model.md, `fp8_gathers`).
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// [instruction of the segment]: the gather in 8 bits that it is, or whose result it reads, as an index into the segment; -1: neither.
std::vector<int> narrow_gathers(const Plan& plan, const Role& role, const Segment& segment);

// Bytes that an 8-bit product moves beyond the casts of delayed scaling (strategy/kernels/op_cost.h): a pass that reads the operand (2) for its
// largest magnitude (`maxima`), less what quantising before a gather among `members` ranks spares, each of which measures, reads (2) and
// writes (1) its own part alone. May be negative. 0 for other computes and for gradients of weights, whose operands are there.
Bytes further_casts(const Compute& what, bool maxima, int members);

}  // namespace foreshard
