// Costs of instructions that are alone: the time of a collective, before the first byte, then the stretched bytes over the busiest link; a
// plan of two ranks.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "core/network/network.h"
#include "strategy/cost/collective_cost.h"

namespace foreshard {

inline std::vector<DeviceId> first(int count) {  // devices of the cluster
  std::vector<DeviceId> devices;
  for (int i = 0; i < count; ++i) devices.push_back({i});
  return devices;
}

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
    double longest = 0, bytes = 0, nvlink = 0, others = 0;
    for (const auto& [id, count] : times) {
      const NetworkLink link = network.link(id);
      const double time = phase.bytes * count / link.rate().value;
      if (time > longest) longest = time, bytes = phase.bytes * count;
      const bool fast = link.kind == LinkKind::NvLink;
      (fast ? nvlink : others) = std::max(fast ? nvlink : others, time);
      if (time <= slowest) continue;
      slowest = time;
      path.link = link.kind;
      path.bandwidth = link.rate();
    }
    path.phases.push_back({{nvlink}, {others}});
    path.flow += {longest}, path.bytes += bytes;
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

// Two ranks in a group; the first executes the instructions, on one stream.
inline Plan plan_of_two(const Cluster& cluster, std::vector<Instruction> instructions) {
  Plan plan;
  plan.segments = {{.instructions = std::move(instructions)}, {}};
  plan.groups = {{"both", {{0}, {1}}, {}}};
  for (Instruction& instruction : plan.segments[0].instructions) instruction.stream = {0};
  for (int role = 0; role < 2; ++role)
    plan.roles.push_back(
        {.device_kind = cluster.nodes[0].shape.gpu, .streams = {{"compute"}}, .actions = {{.segment = {role}}}});
  plan.placement.order = {Placement::kRole};
  return plan;
}

}  // namespace foreshard
