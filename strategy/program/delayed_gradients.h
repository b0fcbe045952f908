// Weight gradients behind communication (Megatron-Core's --delay-wgrad-compute; docs/schedules.md, "Delayed weight gradients"). Internal to
// strategy/.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// The segment of a whole backward with the weight gradients of `layers` moved behind the communication that comes next on the stream
// `communication` or sends to another stage. So what is sent is there sooner, and the weight gradients run beside the communication. What
// reads a weight gradient (its sum over replicas) moves with it, and a block that it reads lives until it. A weight gradient stays before
// an instruction that writes or takes over what it reads, and before those of the next layer.
Segment delay_weight_gradients(Segment whole, StreamId communication, const std::vector<LayerId>& layers);

}  // namespace foreshard
