// Binding predecessors: for every span of a trace, which end let it begin. Rebuilt from the meaning of the plan
// (streams, `after`, events, exchanges and collectives) and the integer times of the trace, so it holds for every
// backend.
//
//   rank 0  compute  [ F0 ][ F1 ]            before(B0) = the receive, because it ended last
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
  std::int32_t before = -1;  // index in Trace::spans; -1: the start of the run
  std::int32_t peer = -1;    // the matching span of the class that came last to the exchange or collective; -1: this one
  bool operator==(const Binding&) const = default;
};

// One entry per span. Linear in spans and in the instructions that have an edge off their stream. Throws Error when the
// trace does not belong to the plan (an index out of range).
std::vector<Binding> bind_spans(const Plan& plan, const Trace& trace);

// A piece of the critical chain: `span` explains the time from `begin` to `end`. `begin` is the end of the piece
// before; it lies before the span's own begin only when the trace has a hole there (measured runs).
struct ChainLink {
  std::int32_t span = 0;
  Nanoseconds begin = {}, end = {};
  bool operator==(const ChainLink&) const = default;
};

// From 0 to the makespan without a gap, in time order. Empty for an empty trace.
std::vector<ChainLink> critical_chain(const Trace& trace, const std::vector<Binding>& bindings);

}  // namespace foreshard
