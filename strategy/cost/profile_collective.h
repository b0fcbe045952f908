// Times of collectives from the measurements of a machine profile, for the class of links that a group communicates over. They are
// interpolated between measured sizes and numbers of ranks.
#pragma once

#include <optional>

#include "core/cluster/cluster.h"
#include "core/profile/machine_profile.h"

namespace foreshard {

// The size of a group and where its ranks are; `link` is the slowest kind of link inside a node.
struct GroupPlace {
  int ranks = 2, nodes = 1;
  LinkKind link = LinkKind::NvLink;
};

struct MeasuredTime {
  Seconds latency = {};  // before the first byte
  Seconds wire = {};     // for the bytes, with no other traffic on the links
  bool operator==(const MeasuredTime&) const = default;
};

// Uses the first of these classes of links that was measured: between nodes, the network; inside a node, NVLink or PCIe, then between
// processes of a node, then inside one process. In a class it uses the first of these algorithms: the collective's own, the library's own
// choice, Direct.
//   bytes    time is linear between two measured sizes, and beyond them: its slope gives the wire's part, the rest is latency
//   ranks    between two measured numbers of ranks, latency per step and time per byte (steps and bytes of a ring) are interpolated over
//            the logarithm of the ranks; outside their range the nearest one is used
//   nodes    of groups over several nodes, those with the nearest number of ranks per node count
// Empty: not measured.
std::optional<MeasuredTime> profiled_collective(const MachineProfile& profile, const Collective& what, const GroupPlace& place);

// Latency and bandwidth of a message between two ranks over the first of these classes that was measured; empty: none was.
std::optional<FittedLink> profiled_link(const MachineProfile& profile, const GroupPlace& place);

}  // namespace foreshard
