// Small clusters built by hand for tests of core/network and core/cluster.
#pragma once

#include <string>

#include "core/cluster/cluster.h"
#include "core/network/network.h"

namespace foreshard {

inline int add_part(NodeShape& shape, PartKind kind, const std::string& name, int rail = -1) {
  shape.parts.push_back({kind, name, rail});
  return static_cast<int>(shape.parts.size()) - 1;
}

inline void join(NodeShape& shape, int from, int to, LinkKind kind, double bandwidth, double latency = 1e-6) {
  shape.links.push_back({from, to, kind, {bandwidth}, {latency}});
}

// `gpus` GPUs below an NVSwitch (nvlink > 0) and PCIe switches with `per_switch` GPUs each; one NIC beside each GPU of
// a switch or, with fewer NICs, `nics` of them spread over the switches; one socket per two switches, joined in a
// chain; one DRAM each.
struct ShapeChoice {
  int gpus = 8, per_switch = 2, nics = 8;
  double nvlink = 300e9, pcie = 32e9, nic = 25e9;
};

inline NodeShape switched_shape(const ShapeChoice& choice) {
  NodeShape shape{.name = "node",
                  .gpu = "X",
                  .gpus = choice.gpus,
                  .nics = choice.nics,
                  .nic_bandwidth = {choice.nic},
                  .nic_latency = {2e-6}};
  for (int i = 0; i < choice.gpus; ++i) add_part(shape, PartKind::Gpu, "gpu" + std::to_string(i));
  if (choice.nvlink > 0) {
    const int nvswitch = add_part(shape, PartKind::NvSwitch, "nvswitch");
    for (int i = 0; i < choice.gpus; ++i) join(shape, i, nvswitch, LinkKind::NvLink, choice.nvlink);
  }
  const int switches = (choice.gpus + choice.per_switch - 1) / choice.per_switch;
  int socket = -1, before = -1;
  std::vector<int> pcie;
  for (int s = 0; s < switches; ++s) {
    if (s % 2 == 0) {
      before = socket;
      socket = add_part(shape, PartKind::Cpu, "cpu" + std::to_string(s / 2));
      join(shape, socket, add_part(shape, PartKind::Dram, "dram" + std::to_string(s / 2)), LinkKind::DramBus, 100e9, 0);
      if (before >= 0) join(shape, before, socket, LinkKind::CpuToCpu, 50e9);
    }
    pcie.push_back(add_part(shape, PartKind::PcieSwitch, "pcie" + std::to_string(s)));
    join(shape, pcie.back(), socket, LinkKind::Pcie, choice.pcie);
  }
  for (int i = 0; i < choice.gpus; ++i)
    join(shape, i, pcie[static_cast<std::size_t>(i / choice.per_switch)], LinkKind::Pcie, choice.pcie);
  for (int i = 0; i < choice.nics; ++i)
    join(shape, add_part(shape, PartKind::Nic, "nic" + std::to_string(i)),
         pcie[static_cast<std::size_t>(i * switches / choice.nics)], LinkKind::Pcie, choice.pcie);
  return shape;
}

inline Cluster cluster_of(const NodeShape& shape, int nodes, const Fabric& fabric = {}) {
  return {.name = "test", .gpus = {{.name = "X"}}, .nodes = {{shape, nodes}}, .fabric = fabric};
}

// Links that reach the rates of `shape`: theirs are larger by what headers and credits take.
inline Cluster lossless_cluster_of(NodeShape shape, int nodes, const Fabric& fabric = {}) {
  for (NodeLink& link : shape.links) link.bandwidth.value /= link_share(link.kind);
  shape.nic_bandwidth.value /= link_share(LinkKind::Network);
  return cluster_of(shape, nodes, fabric);
}

}  // namespace foreshard
