// Machines of eight GPUs drawn at random, and better ones, for laws of hardware.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/strategy/support_random_strategy.h"

namespace foreshard {

struct Machine {
  std::string nvlink = "none", nics_at = "switch";
  double nvlink_gb = 300, pcie_gb = 31.5, nic_gbit = 200, socket_gb = 100, oversubscription = 1;
  int switches = 4, nics = 4, nodes = 2, sockets = 2;
  bool rails = false;

  std::string text() const {
    const std::string link =
        nvlink == "none" ? ""
                         : "\"nvlink\": {\"kind\": \"" + nvlink + "\", \"bandwidth\": \"" + number(nvlink_gb) + " GB/s\"}, ";
    return "{\"gpu\": \"a100-80\", \"gpus_per_node\": 8, " + link + "\"pcie\": {\"bandwidth\": \"" + number(pcie_gb) +
           " GB/s\", \"switches\": " + std::to_string(switches) + "}, \"nics\": {\"count\": " + std::to_string(nics) +
           ", \"bandwidth\": \"" + number(nic_gbit) + " Gb/s\"" + (nics_at == "socket" ? ", \"at\": \"socket\"" : "") +
           "}, \"sockets\": " + std::to_string(sockets) + ", \"socket_link\": \"" + number(socket_gb) +
           " GB/s\", \"nodes\": " + std::to_string(nodes) + ", \"fabric\": {\"rail_optimised\": " + (rails ? "true" : "false") +
           ", \"nodes_per_leaf\": 2, \"oversubscription\": " + number(oversubscription) + "}}";
  }
  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
  }
};

inline Machine random_machine(RandomChoice& random) {
  Machine m;
  m.nvlink = random.one_of<const char*>({"none", "switch", "mesh"});
  m.nics_at = random.one_of<const char*>({"switch", "socket"});
  m.nvlink_gb = random.one_of({50.0, 300.0, 450.0, 900.0}), m.pcie_gb = random.one_of({15.75, 31.508, 63.015});
  m.nic_gbit = random.one_of({25.0, 100.0, 200.0, 400.0, 500.0, 800.0}), m.socket_gb = random.one_of({40.0, 100.0});
  m.switches = random.one_of({2, 4}), m.nics = random.one_of({1, 2, 4, 8}), m.nodes = random(1, 4);
  m.oversubscription = random.one_of({1.0, 2.0}), m.rails = random.toss();
  return m;
}

// Makes one link, or the number of NICs, better; returns what.
inline std::string improve(Machine& m, RandomChoice& random) {
  const double factor = random.one_of({1.001, 1.01, 1.1, 1.5, 2.0, 4.0});
  switch (random(0, 5)) {
    case 0: return m.nvlink_gb *= factor, "NVLink";
    case 1: return m.pcie_gb *= factor, "PCIe";
    case 2: return m.socket_gb *= factor, "link between sockets";
    case 3: return m.oversubscription = 1, "oversubscription";
    case 4: return m.nics = std::min(8, m.nics * 2), "NICs";
    default: return m.nic_gbit *= factor, "NIC";
  }
}

// Makes the GPUs of a cluster better in one thing; returns what.
inline std::string improve_gpus(Cluster& cluster, RandomChoice& random) {
  const double factor = random.one_of({1.001, 1.01, 1.1, 1.5, 2.0, 4.0});
  const int thing = random(0, 2);
  for (Gpu& gpu : cluster.gpus) {
    if (thing == 0) gpu.memory_bandwidth.value *= factor;
    if (thing == 1) gpu.memory.value = static_cast<std::int64_t>(static_cast<double>(gpu.memory.value) * factor);
    if (thing == 2)
      for (FlopsPerSecond* peak :
           {&gpu.fp64, &gpu.fp32, &gpu.tf32, &gpu.fp16, &gpu.bf16, &gpu.fp8, &gpu.nvfp4, &gpu.vector_fp32})
        peak->value *= factor;
  }
  return thing == 0 ? "memory bandwidth" : thing == 1 ? "memory" : "FLOP/s";
}

}  // namespace foreshard
