// The path of a collective: the latency steps and bytes of its phases on the links between the devices of its group.
#pragma once

#include <vector>

#include "core/network/network.h"
#include "strategy/cost/collective_cost.h"

namespace foreshard {

// `devices`: those of the group's members, in the order of the members.
CommunicationPath communication_path(const Network& network, const Collective& what, const std::vector<DeviceId>& devices);

// That of the same collective with `share` times the bytes.
CommunicationPath scaled_path(CommunicationPath path, double share);

}  // namespace foreshard
