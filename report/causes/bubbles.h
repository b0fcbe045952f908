// Bubbles: the time in which no instruction runs on a rank's compute streams, cut into pieces with one cause each.
//
// For a gap the chain of binding predecessors is followed back from the span that ends it, across ranks, until it
// leaves the gap. Pieces in which the chain is on the wire (exchange, copy, or a collective on a communication stream)
// are exposed communication. Pieces reached through a collective whose last member was another class of the same role
// are a straggler's. The rest is what another stage was doing, and is named by where the rank stands in its step:
//
//   |-- warm-up: until its first backward --|-- dependency --|-- drain: from its last forward on --|-- drain, barrier
//   --| [F0][F1]                                [B0][F2][B1]..[F7]            [B6]              [B7]   [reduce][update]
//
// After its last forward or backward a rank loses as much to the drain as the last rank of all finishes its own later;
// idle time beyond that is the barrier's. A rank without a backward is warm from its first work on.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/result/summary.h"
#include "core/result/trace.h"
#include "report/causes/binding.h"

namespace foreshard {

struct Bubble {
  ClassId who = {};
  Nanoseconds begin = {}, end = {};
  BubbleCause cause = BubbleCause::Dependency;
  std::int32_t before = -1;  // the span that ends the gap; -1: the end of the run
  bool operator==(const Bubble&) const = default;
};

// Ordered by (who, begin). The pieces of a class sum to its idle time exactly, in nanoseconds.
std::vector<Bubble> find_bubbles(const Plan& plan, const Trace& trace, const std::vector<Binding>& bindings);

// One bubble per wait: pieces that follow each other without work between them, named by the cause that takes most of their time.
std::vector<Bubble> whole_bubbles(const std::vector<Bubble>& pieces);

}  // namespace foreshard
