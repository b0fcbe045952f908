// How many receive buffers a pipeline stage needs so that no transfer waits for a buffer: lower() sizes its rings by
// it.
#pragma once

#include <vector>

#include "strategy/schedule/schedule.h"

namespace foreshard {

// [stage]; 0 where nothing comes (inputs of the first stage, gradients of the last one). Micro-batch i uses
// the slot i mod count. An input is held from the start of its transfer to the end of the stage's backward (or weight
// gradient) of that micro-batch, a gradient likewise.
struct ReceiveSlots {
  std::vector<int> input = {}, gradient = {};
  bool operator==(const ReceiveSlots&) const = default;
};

// From order only, in O(actions); never more than the micro-batches.
//   input     the most micro-batches that the sending stage has in flight: it cannot send another before this stage has
//             given one back, so an input never waits, whatever the durations (+ the weight gradients that this stage
//             defers)
//   gradient  the most that are here at once with F = I = W = 1 and free transfers, and one more, so that a transfer can
//             begin while the last is in use
// Neighbours on the same rank hand over in place: exactly as many as are here at once in the order of the list.
// The lists are complete and do not deadlock; `routes` as in ScheduleTimes.
ReceiveSlots receive_slots(const ScheduleLists& lists, int routes = 1);

}  // namespace foreshard
