// Binding predecessors: for every span of a trace, the span that it waited for longest. They are derived from the
// dependencies of the plan (streams, `after`, events, exchanges and collectives) and the integer times of the trace, so
// this works for simulated and for measured traces.
//
//   rank 0  compute  [ F0 ][ F1 ]            before(B0) = the receive, because of all that B0 waited for it ended last
//           receive              [~~]        before(receive) = B0 of rank 1: the sender came last (peer = its send)
//   rank 1  compute        [ F0 ][ B0 ]
//           send                   [~~]
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/trace.h"

namespace foreshard {

struct Binding {
  std::int32_t before = -1;  // the predecessor that ended last, an index in Trace::spans; -1: none, the start of the run
  // For an exchange or collective that waited for a span of another class: that span, the last to be ready. `before` is
  // then the predecessor of that span. -1: this span was ready last, or no other class takes part.
  std::int32_t peer = -1;
  bool operator==(const Binding&) const = default;
};

// [span]. Takes time linear in the spans and in the instructions with a dependency on another stream or rank. Throws Error
// when the trace does not belong to the plan (an index out of range).
std::vector<Binding> bind_spans(const Plan& plan, const Trace& trace);

// One link of the critical chain: the run spent the time from `begin` to `end` on `span`. `begin` is the end of the
// previous link. It is earlier than the start of the span only where the trace has a gap (measured runs).
struct ChainStep {
  std::int32_t span = 0;
  Nanoseconds begin = {}, end = {};
  bool operator==(const ChainStep&) const = default;
};

// The chain of binding predecessors that ends with the span that ends last. Its links cover the time from 0 to the makespan
// without a gap, in time order. Empty for an empty trace.
std::vector<ChainStep> critical_chain(const Trace& trace, const std::vector<Binding>& bindings);

}  // namespace foreshard
