// Isolated costs of communication, apart from the bytes on its links: the time before the first byte, the factor by which protocol
// and link efficiency stretch the bytes, and the share of the GPU's SMs that its kernels take. After NCCL's own tuning model
// (src/graph/tuning.cc).
//
// Cost::busy is everything before the first byte: launch, the protocol's base latency and all latency steps (NCCL's latency per
// step over that kind of link, or the route's latency where that is longer). A reader of the plan adds no latency of its own.
// Then bytes * wire_factor flow over the links at the rates of core/network:
//   isolated time = busy + wire_factor * sum over the phases of the busiest link's bytes / bandwidth
#pragma once

#include <vector>

#include "core/base/units.h"
#include "core/cluster/cluster.h"
#include "core/network/network.h"
#include "core/plan/plan.h"

namespace foreshard {

// Where a collective or an exchange runs, from core/network. `link` and `bandwidth` are those of the link that is busy longest in any phase,
// as on the clock.
struct CommunicationPath {
  int members = 1;            // ranks of the group
  int nodes = 1;              // nodes that the ranks are on
  int steps = 0;              // latency steps, summed over all phases
  Seconds step_latency = {};  // the longest route latency of a step
  LinkKind link = LinkKind::NvLink;
  LinkKind inside_link = LinkKind::NvLink;  // of groups over nodes: between members of one node
  double bytes = 0;                         // over the busiest link of each phase, summed
  BytesPerSecond bandwidth = {};            // that transfers reach, per direction; 0: unknown
  Seconds flow = {};                        // sum over the phases of the time that each one's busiest link takes for its bytes
  // How long the links of a phase are busy. Phases in which both are in proportion are added up.
  struct Phase {
    Seconds nvlink = {}, others = {};
    bool operator==(const Phase&) const = default;
  };
  std::vector<Phase> phases = {};
  Seconds inside = {};  // all-to-alls over nodes: of what goes to the rank's own node, over NVLink at its datasheet rate
  bool operator==(const CommunicationPath&) const = default;
};

// Whose kernels send the rows of an all-to-all. DeepEP and HybridEP send tokens in chunks of some tens, so that no slice of NCCL's buffers
// comes last. Inside a node DeepEP reaches what NCCL's all-to-alls reach, HybridEP what its rings do.
enum class RowKernels : std::uint8_t { Nccl, DeepEp, HybridEp };

// What bytes between GPUs are stretched by over links other than NVLink. On the way to a NIC, which reads and writes memory like a copy engine,
// not at all; between two GPUs of a node their rate is less than that of copies.
double peer_stretch(const CommunicationPath& path);
// Adds a phase to those of the path.
void add_phase(CommunicationPath& path, const CommunicationPath::Phase& phase);

// With NCCL's fastest protocol, or with NVLink SHARP if that is the collective's algorithm and the group is in one node. One member: zero.
Cost collective_cost(const Gpu& gpu, const Collective& collective, const CommunicationPath& path,
                     RowKernels kernels = RowKernels::Nccl);

// Point to point (pipeline, ring attention): one step.
Cost exchange_cost(const Gpu& gpu, const Exchange& exchange, const CommunicationPath& path);

// From host to device or back, by a copy engine, which takes no SMs. `pinned` false: through a staging buffer, at half the rate.
Cost copy_cost(const Gpu& gpu, const Copy& copy, bool pinned = true);

}  // namespace foreshard
