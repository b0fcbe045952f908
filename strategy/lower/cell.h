// A forward and a backward of different micro-batches as one action (DualPipe's cell; docs/schedules.md, "Forward and backward in one
// cell"). Internal to strategy/.
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

// One segment that runs `a`, then `b`. The parameters of `b` follow those of `a`.
Segment joined(const Segment& a, const Segment& b);

// One segment that takes instructions of `a` and `b` in turns, each in its own order. A turn ends when a communication on the stream
// `communication` has been issued; so the computes of one segment overlap the communication of the other. Without such a communication `b`
// follows `a`. With `delayed`, weight gradients that follow a communication belong to its turn (delayed_gradients.h). Scratch buffers that
// both use are doubled: copies for `b`, which `b` acquires and releases itself, are appended to `role`.
Segment in_turns(const Segment& a, const Segment& b, StreamId communication, bool delayed, Role& role);

}  // namespace foreshard
