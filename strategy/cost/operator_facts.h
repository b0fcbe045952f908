// Facts of operators and segments that the costs of a framework depend on: who computes what of a loss whose vocabulary tensor-parallel
// ranks share, which activation is gated, what a segment reads and recomputes.
#pragma once

#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Of a loss whose vocabulary tensor-parallel ranks share: how many ranks' parts each rank computes, its own or, where the logits are gathered
// (MessageRules::gathers_logits), all. 1 for other operators.
std::int64_t loss_parts(const Plan& plan, const FrameworkPreset& preset, const Compute& what);

// Bytes of the logits of the whole vocabulary, if every rank gathers them (MessageRules::gathers_logits) and this operator is the one behind
// which that is costed: the maxima in the forward of a loss. 0 for other operators.
Bytes gathered_logits(const Plan& plan, const FrameworkPreset& preset, const Compute& what);

// Whether the operator is an activation that multiplies two products of the same input, gate and up.
bool is_gated(const Operation& op);

// Whether the segment has a compute of the phase, and whether it recomputes an attention.
bool has_phase(const Segment& segment, Phase phase);
bool recomputes_attention(const Segment& segment);

// Whether the forward of the segment reads a micro-batch from the host: its tokens, or the targets of its loss.
bool takes_batch(const Segment& segment);

}  // namespace foreshard
