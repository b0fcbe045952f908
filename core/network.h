// Network: the expanded graph of a Cluster, routes on it, and what a collective puts on which links. Pure functions: no time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/cluster.h"
#include "core/plan.h"

namespace foreshard {

struct NetworkLink {            // one direction
  LinkKind kind = LinkKind::Network;
  BytesPerSecond bandwidth = {};  // pooled: the sum over equal-cost parallel links
  Seconds latency = {};
};

struct Route {
  std::vector<LinkId> links = {};  // in order; empty: source and destination are the same device
  Seconds latency = {};            // sum of link and switch latencies
};

enum class Endpoint : std::uint8_t { Gpu, HostMemory, Nvme };

class Network {
 public:
  explicit Network(const Cluster& cluster);
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  int links() const;
  NetworkLink link(LinkId id) const;
  std::string name(LinkId id) const;              // "node3/gpu5->nvswitch", "leaf0.rail2->spine"
  const Route& route(DeviceId from, DeviceId to) const;   // cached; GPU to GPU
  Route host_route(DeviceId gpu, Endpoint end, bool to_device) const;  // copies between a GPU and host memory or NVMe
  int node(DeviceId gpu) const;
  const Gpu& gpu(DeviceId device) const;
  const NodeShape& node_shape(int node) const;
  int devices() const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

// What a collective does to the network, for one instance of a group (design: one coupled flow, simgrid.md section 5).
// The flow carries `bytes` over every entry of `links` (a link crossed k times is listed k times) after `steps` latencies.
struct CollectiveFlow {
  std::vector<LinkId> links = {};
  double bytes = 0;          // per link entry
  int steps = 0;             // latency steps: 2(n-1) for a ring all-reduce, n-1 for reduce-scatter and all-gather
  Seconds step_latency = {}; // largest route latency between neighbours
};
CollectiveFlow collective_flow(const Network& network, const Collective& collective, const std::vector<DeviceId>& members);

// Bytes on the busiest edge of the algorithm and its latency steps, for n members and `bytes` of full tensor.
struct CollectiveVolume {
  double bytes = 0;
  int steps = 0;
};
CollectiveVolume collective_volume(CollectiveKind kind, Algorithm algorithm, Bytes bytes, int members);

// Ring order that crosses node borders as rarely as possible: members sorted by device.
std::vector<DeviceId> ring_order(const Network& network, std::vector<DeviceId> members);

}  // namespace foreshard
