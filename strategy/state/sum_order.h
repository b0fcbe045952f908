// The order in which gradient sums are sent, when a unit that the next forward needs first may overtake units that were ready before it
// (ByteScheduler: Peng et al., SOSP 2019; P3; TicTac). Sums are divided into parts. A part that is being sent is not interrupted, and no
// more bytes than the credit are being sent at once. Streams run in issue order and all ranks must issue the same order; so the order is
// decided here, before the plan is made.
//
//   two layers, backward of 1 each, sums of 4 (layer 2) and 2 (layer 1), next forward of 1 each
//   as ready   2222 11 |F1 F2        9      by priority, parts of 1   2 11 2 2 2 |F1 .. F2   8
#pragma once

#include <vector>

#include "core/base/units.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// A unit whose gradients are summed. Units are listed in the order in which the next forward needs them.
struct SummedUnit {
  Seconds ready = {};    // time from the begin of the backward until its gradients are complete
  double bytes = 0;      // of its gradients
  Seconds forward = {};  // duration of the layers of the next forward that wait for this unit and for none after it
};

struct SumChannel {
  BytesPerSecond bandwidth = {};  // bytes of gradients summed per second
  Seconds latency = {};           // of a part, before its first byte; hidden while another part is being sent
  SumOrder order = SumOrder::Ready;
  double partition = 0;  // bytes of a part; 0: whole units
  double credit = 0;     // bytes that may be in flight at once; 0: one part
};

struct SentPart {
  int unit = 0;
  double first = 0, bytes = 0;   // the bytes [first, first + bytes) of the unit
  Seconds begin = {}, end = {};  // since the begin of the backward
};

struct SumSchedule {
  std::vector<SentPart> parts = {};  // in the order in which they are sent
  Seconds end = {};                  // when the next forward ends, since the begin of the backward
};

// Whenever the credit allows another part, sends the next part of a ready unit: of the unit that has been ready longest
// (SumOrder::Ready), or of the one that the next forward needs first. The latter also breaks ties.
SumSchedule schedule_sums(const std::vector<SummedUnit>& units, const SumChannel& channel);

}  // namespace foreshard
