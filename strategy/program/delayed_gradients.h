// Weight gradients behind communication (Megatron-Core's --delay-wgrad-compute; docs/schedules.md, "Delayed weight gradients"). Internal to
// strategy/.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// The segment of an unsplit backward with the weight gradients of `layers` moved behind the next communication on the stream
// `communication` or send to another stage. So data is sent sooner, and the weight gradients overlap the communication. What reads a weight
// gradient (its sum over replicas) moves with it, and the blocks that it reads live until then. A weight gradient stays before an
// instruction that writes or takes over what it reads, and before the weight gradients of the next layer.
Segment delay_weight_gradients(Segment whole, StreamId communication, const std::vector<LayerId>& layers);

}  // namespace foreshard
