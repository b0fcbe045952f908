#include "strategy/cost/communication_path.h"

#include <algorithm>
#include <unordered_map>

namespace foreshard {

// Of links that are busy equally long, the one with the lowest id.
static void busiest_link(const Network& network, const CollectiveFlow& phase, CommunicationPath& path, Seconds& slowest) {
  std::unordered_map<std::int32_t, int> times;
  for (const LinkId link : phase.links) ++times[link.value];
  Seconds alone = {};
  LinkId busiest = {};
  for (const auto& [id, count] : times) {
    const Seconds time{phase.bytes * count / network.link({id}).bandwidth.value};
    if (time > alone || (time == alone && id < busiest.value)) alone = time, busiest = {id};
  }
  path.flow = path.flow + alone;
  if (!(alone > slowest)) return;
  const NetworkLink link = network.link(busiest);
  slowest = alone;
  path.link = link.kind;
  path.bytes = phase.bytes * times.at(busiest.value);
  path.bandwidth = link.bandwidth;
}

CommunicationPath communication_path(const Network& network, const Collective& what, const std::vector<DeviceId>& devices) {
  std::vector<int> nodes;
  for (const DeviceId device : devices) nodes.push_back(network.node(device));
  std::sort(nodes.begin(), nodes.end());
  CommunicationPath path{.members = static_cast<int>(devices.size()),
                         .nodes = static_cast<int>(std::unique(nodes.begin(), nodes.end()) - nodes.begin())};
  Seconds slowest;
  for (const CollectiveFlow& phase : collective_phases(network, what, devices)) {
    path.steps += phase.steps;
    path.step_latency = max(path.step_latency, phase.step_latency);
    busiest_link(network, phase, path, slowest);
  }
  return path;
}

}  // namespace foreshard
