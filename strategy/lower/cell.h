// A forward and a backward of different micro-batches as one action (DualPipe's cell; docs/schedules.md, "Forward and backward in one
// cell"). Internal to strategy/.
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

// `b` behind `a`: its parameters follow those of `a`.
Segment joined(const Segment& a, const Segment& b);

// `a` and `b` in turns: each goes on until it has begun a communication on the stream `communication`, then the other one does, so that the
// computes of the one lie beside the communication of the other. Without such a communication `b` follows `a`. What both use as scratch, `b` has in buffers of its own, which are appended to
// `role`; they are used between an acquire and a release inside `b`.
Segment in_turns(const Segment& a, const Segment& b, StreamId communication, Role& role);

}  // namespace foreshard
