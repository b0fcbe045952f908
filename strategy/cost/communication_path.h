// The path of a collective: the latency steps and bytes of its phases on the links between the devices of its group.
#pragma once

#include <vector>

#include "core/network/network.h"
#include "strategy/cost/collective_cost.h"

namespace foreshard {

// `devices`: those of the group's members, in the order of the members. The load on links is proportional to the bytes, so it is worked
// out once for all sizes. Each thread keeps the paths of the network that it asked for last: a search asks for the same groups in hundreds
// of plans.
CommunicationPath communication_path(const Network& network, const Collective& what, const std::vector<DeviceId>& devices);

// The same path for `share` of the bytes.
CommunicationPath part_of(CommunicationPath path, double share);

// Of a transfer of `bytes` between two devices, one step.
CommunicationPath route_path(const Network& network, DeviceId from, DeviceId to, Bytes bytes);

}  // namespace foreshard
