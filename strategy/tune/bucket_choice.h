// `--bucket auto`: in which units gradients are summed over replicas, and with `--sum-order priority` in which parts and with what credit
// these leave. Small units begin sooner, hide more and let others overtake; large ones pay a latency less often.
#pragma once

#include <functional>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"

namespace foreshard {

struct SumUnits {
  Bytes bucket = {};  // 0: the default
  SumOrder order = SumOrder::Ready;
  Bytes partition = {}, credit = {};  // as in CommunicationChoice; 0: what it says stays
  bool operator==(const SumUnits&) const = default;
};

// What is tried for `gradients` bytes on a rank, when `asked` is the order: the default first; then sizes of a half of them down to a
// 64th, each a half of the one before and none below 1 MiB, as they are ready. By priority each of these also by itself and, of the best so far,
// in parts of a half down to a 32nd with room for one or four. `seconds` times one of them; none: it cannot be made. The least wins, of equals the first.
SumUnits least_units(Bytes gradients, SumOrder asked, const std::function<std::optional<double>(const SumUnits&)>& seconds);

void apply(const SumUnits& units, CommunicationChoice& to);

// By replays on the light clock: of one step, or by priority, whose gain lies between steps, of a second one behind it.
SumUnits best_units(const Model& model, const Cluster& cluster, const Strategy& strategy, const LowerOptions& options);

}  // namespace foreshard
