// The time of a collective that is alone on the network: before the first byte, then the stretched bytes over the busiest link.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "core/network/network.h"
#include "strategy/cost/collective_cost.h"

namespace foreshard {

inline CommunicationPath path_of(const Network& network, const Collective& what, const std::vector<DeviceId>& members,
                                 double* wire = nullptr) {
  std::vector<int> nodes;
  for (const DeviceId device : members) nodes.push_back(network.node(device));
  std::sort(nodes.begin(), nodes.end());
  CommunicationPath path = {.members = static_cast<int>(members.size()),
                            .nodes = static_cast<int>(std::unique(nodes.begin(), nodes.end()) - nodes.begin())};
  double slowest = 0;
  for (const CollectiveFlow& phase : collective_phases(network, what, members)) {
    path.steps += phase.steps;
    path.step_latency = max(path.step_latency, phase.step_latency);
    std::map<LinkId, int> times;
    for (const LinkId link : phase.links) ++times[link];
    double longest = 0;
    for (const auto& [id, count] : times) {
      const NetworkLink link = network.link(id);
      const double time = phase.bytes * count / link.bandwidth.value;
      longest = std::max(longest, time);
      if (time <= slowest) continue;
      slowest = time;
      path.link = link.kind;
      path.bytes = phase.bytes * count;
      path.bandwidth = link.bandwidth;
    }
    if (wire != nullptr) *wire += longest;
  }
  return path;
}

inline double alone(const Network& network, const Collective& what, const std::vector<DeviceId>& members) {
  double wire = 0;
  const CommunicationPath path = path_of(network, what, members, &wire);
  const Cost cost = collective_cost(network.gpu(members.front()), what, path);
  return to_seconds(cost.busy).value + wire * cost.wire_factor;
}

}  // namespace foreshard
