// How many receive buffers a pipeline stage needs so that no transfer waits for a free one. lower() sizes its ring buffers by it.
#pragma once

#include <vector>

#include "strategy/schedule/schedule.h"

namespace foreshard {

// [stage]: number of slots for inputs from the stage before, and for output gradients from the stage after; 0 if there is no such stage.
// Micro-batch i uses slot i mod the number of slots. It occupies the slot from the start of the transfer to the end of the stage's backward
// (its weight gradient, if backwards are split) of that micro-batch.
struct ReceiveSlots {
  std::vector<int> input = {}, gradient = {};
  bool operator==(const ReceiveSlots&) const = default;
};

// Computed from the order of the lists alone, in O(actions). Never more slots than micro-batches.
//   input     the most micro-batches that the sending stage has in flight, since it cannot send another before this stage has returned a
//             gradient; plus the most weight gradients that this stage defers. So no input waits for a slot, whatever the durations.
//   gradient  the most that are received and in use at once if F, I and W take 1 each and transfers no time, plus one, so that a transfer
//             can begin while all others are in use
// If the neighbouring stage is on the same rank, nothing is transferred, and the number is the most in use at once in the list's order.
// Asserts that the lists are complete and do not deadlock. `routes` as in ScheduleTimes. See docs/schedules.md, "Receive rings".
ReceiveSlots receive_slots(const ScheduleLists& lists, int routes = 1);

}  // namespace foreshard
