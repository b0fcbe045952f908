// NVLink SHARP: the NVSwitches of a node do the reduction.
#include <algorithm>

#include "core/network/algorithms.h"

namespace foreshard {

namespace {

using namespace algorithms;

bool of_shards(CollectiveKind kind, int, int) { return is_shardwise(kind); }

CollectiveVolume sharp_volume(CollectiveKind kind, double bytes, int n) {
  if (is_all_reduce(kind)) return {bytes * (n + 1) / n, 2};
  return {bytes, 1};
}

// Lists each port once: the hop from every member to the next uses the NVLink port out of one member and the port into the other.
std::vector<CollectiveFlow> nvlink_sharp(const Network& network, const Collective& collective, const Devices& members) {
  const int node = network.node(members.front());
  const bool together =
      std::all_of(members.begin(), members.end(), [&](DeviceId member) { return network.node(member) == node; });
  if (!together || !network.node_shape(node).nvlink_sharp) return ring_phases(network, collective, members);
  FlowBuilder flow(network);
  for (std::size_t i = 0; i < members.size(); ++i) flow.hop(members[i], members[(i + 1) % members.size()]);
  const int n = static_cast<int>(members.size());
  const CollectiveVolume volume = sharp_volume(collective.kind, full(collective), n);
  return {flow.done(volume.bytes, volume.steps)};
}

}  // namespace

AlgorithmEntry nvlink_sharp_algorithm() {
  return {.algorithm = Algorithm::NvlinkSharp, .applies = of_shards, .phases = nvlink_sharp, .volume = sharp_volume};
}

}  // namespace foreshard
