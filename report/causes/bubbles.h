// Bubbles: the time in which no instruction runs on a rank's compute streams, cut into pieces with one cause each.
//
// To explain a gap, the chain of binding predecessors is followed back in time from the span that ends the gap, across
// ranks, to the start of the gap. While the chain runs through an exchange, a copy, or a collective on a communication
// stream, the cause is exposed communication. Once the chain has passed a collective or exchange that waited for another
// class of the same role, all earlier pieces (except communication) have the cause straggler. But if that class came late because its
// experts had more rows, the time by which it came later is expert imbalance, and earlier pieces keep their own causes. In a simulated
// trace the plan says whether it has more rows (ops::GroupedMatMul::others); in a measured one it counts as having more if its
// experts computed for at least half of that time. In every other piece the rank waits for another stage; the cause is then the
// phase of the step that the rank is in:
//
//   |-- warm-up: until its first backward --|-- dependency --|-- drain: from its last forward on --|-- drain, barrier --|
//    [F0][F1]                                [B0][F2][B1]..[F7]            [B6]              [B7]    [reduce][update]
//
// After a rank's last forward or backward, idle time counts as drain until its sum is the time by which the last of all ranks
// finishes its own last forward or backward later; the rest is barrier. For a rank without a backward, warm-up ends when its
// first work begins.
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

// Ordered by (who, begin). The pieces of a class sum exactly to its idle time.
std::vector<Bubble> find_bubbles(const Plan& plan, const Trace& trace, const std::vector<Binding>& bindings);

// Joins adjacent pieces that the same span ends into one bubble, with the cause that takes most of its time.
std::vector<Bubble> whole_bubbles(const std::vector<Bubble>& pieces);

}  // namespace foreshard
