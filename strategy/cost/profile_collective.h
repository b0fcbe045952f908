// Times of collectives from a machine profile: of the class of links that the group communicates over, interpolated over sizes and group sizes.
#pragma once

#include <optional>

#include "core/cluster/cluster.h"
#include "core/profile/machine_profile.h"

namespace foreshard {

// Where a group lies; `link` is the slowest kind of link inside a node.
struct GroupPlace {
  int ranks = 2, nodes = 1;
  LinkKind link = LinkKind::NvLink;
};

struct MeasuredTime {
  Seconds latency = {};  // before the first byte
  Seconds wire = {};     // with the bytes, the links being its own
  bool operator==(const MeasuredTime&) const = default;
};

// Classes to look for, the first that was measured counts: between nodes the network; inside one NVLink or PCIe, else what was measured between
// processes, else inside one. Algorithms: the collective's own, then what the library chose, then Direct.
//   bytes    linear in time between two sizes; the slope is the wire's part. Beyond all sizes the line goes on
//   ranks    a size of group that was not measured takes latency per step and time per byte on the bus (a ring's steps and bytes) from those next to
//            it, mixed by the logarithm of the ranks; beyond all of them from the nearest
//   nodes    of groups over several nodes those with the nearest number of ranks per node
// Nothing: not measured.
std::optional<MeasuredTime> profiled_collective(const MachineProfile& profile, const Collective& what, const GroupPlace& place);

// The link of the class that a message between two ranks takes; nothing: not measured.
std::optional<FittedLink> profiled_link(const MachineProfile& profile, const GroupPlace& place);

}  // namespace foreshard
