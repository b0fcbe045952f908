// In which order sums of gradients leave, when what the next forward needs first may overtake what is ready first (ByteScheduler: Peng et
// al., SOSP 2019; P3; TicTac). Sums are cut into parts; a part that is under way is not interrupted; no more bytes than the credit are under
// way at once. Streams run in issue order and all ranks must agree, so the order is decided here, before the plan is made.
//
//   two layers, backward of 1 each, sums of 4 (layer 2) and 2 (layer 1), next forward of 1 each
//   as ready   2222 11 |F1 F2        9      by priority, parts of 1   2 11 2 2 2 |F1 .. F2   8
#pragma once

#include <vector>

#include "core/base/units.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// A unit that is summed, in the order in which the next forward needs them.
struct SummedUnit {
  Seconds ready = {};    // when the backward has its gradients
  double bytes = 0;      // on the wire
  Seconds forward = {};  // that waits for it and for all units before it
};

struct SumChannel {
  BytesPerSecond bandwidth = {};
  Seconds latency = {};  // of a part, before its first byte; hidden behind another part that is under way
  SumOrder order = SumOrder::Ready;
  double partition = 0;  // bytes of a part; 0: whole units
  double credit = 0;     // bytes that may be under way; 0: one part
};

struct SentPart {
  int unit = 0;
  double first = 0, bytes = 0;  // of the unit
  Seconds begin = {}, end = {};
};

struct SumSchedule {
  std::vector<SentPart> parts = {};  // as they leave
  Seconds end = {};                  // of the next forward
};

// Whenever a part may leave, the first that is ready leaves: by the time since when its unit is ready, or by priority the unit that is
// needed first. Of equals the unit that is needed first.
SumSchedule schedule_sums(const std::vector<SummedUnit>& units, const SumChannel& channel);

}  // namespace foreshard
