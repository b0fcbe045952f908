#include "strategy/cost/communication_path.h"

#include <algorithm>

namespace foreshard {

static void busiest_link(const Network& network, const CollectiveFlow& phase, CommunicationPath& path, Seconds& slowest) {
  if (phase.links.empty()) return;
  const auto [least, most] = std::ranges::minmax(phase.links);
  std::vector<int> times(most.index() - least.index() + 1);
  for (const LinkId link : phase.links) ++times[link.index() - least.index()];
  Seconds alone = {};
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] == 0) continue;
    const NetworkLink link = network.link({least.value + static_cast<std::int32_t>(i)});
    const double bytes = phase.bytes * times[i];
    const Seconds time{bytes / link.bandwidth.value};
    alone = max(alone, time);
    if (time > slowest) {
      slowest = time;
      path.link = link.kind;
      path.bytes = bytes;
      path.bandwidth = link.bandwidth;
    }
  }
  path.flow = path.flow + alone;
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
