// What communication costs beside the bytes on its links: the time before the first byte, the factor by which protocol
// and link efficiency stretch the bytes, and the SMs its kernels take. After NCCL's own tuning model
// (src/graph/tuning.cc).
//
// Who pays what. Cost::busy is everything before the first byte: launch, the protocol's base latency and all latency
// steps (NCCL's step over that kind of link, or the route's latency where that is longer); a reader of the plan adds no
// latency of its own. Then bytes * wire_factor flow over the links at their datasheet rates:
//   time alone = busy + wire_factor * bytes / bandwidth
#pragma once

#include "core/base/units.h"
#include "core/cluster/cluster.h"
#include "core/network/network.h"
#include "core/plan/plan.h"

namespace foreshard {

// Where a collective or an exchange runs, from core/network: of the busiest phase.
struct CommunicationPath {
  int members = 1;                   // ranks of the group
  int nodes = 1;                     // nodes they are on
  int steps = 0;                     // latency steps of all phases
  Seconds step_latency = {};         // route latency between neighbours
  LinkKind link = LinkKind::NvLink;  // of the narrowest link
  double bytes = 0;                  // over the busiest link
  BytesPerSecond bandwidth = {};     // of that link, per direction; 0: unknown
  Seconds flow = {};                 // the bytes of all phases over their busiest links
  bool operator==(const CommunicationPath&) const = default;
};

// The cheapest of NCCL's protocols. One member: all zero.
Cost collective_cost(const Gpu& gpu, const Collective& collective, const CommunicationPath& path);

// Point to point (pipeline, ring attention): one step.
Cost exchange_cost(const Gpu& gpu, const Exchange& exchange, const CommunicationPath& path);

// Host to device or back by a copy engine: no SMs. `pinned` false: through a staging buffer, at half the rate.
Cost copy_cost(const Gpu& gpu, const Copy& copy, bool pinned = true);

}  // namespace foreshard
