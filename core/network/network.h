// Network: the links of a Cluster, routes over them, and what a collective puts on which links. Pure functions: no
// time.
//
// Nothing big is built: a node's graph is routed once per node shape (Dijkstra), the fabric by arithmetic, and a LinkId
// is a formula of (node, local link, direction). Each direction of a link is its own LinkId. The order of ids:
//
//   node 0: local links (up, down) ... NIC ports (up, down) ... | node 1: ... | leaf trunks (up, down) ... | pod trunks
//   ...
//
// A fat tree of equal-cost parallel links is pooled into one trunk per (leaf, direction) and, with three levels, one
// per (pod, direction):   trunk = nodes_per_leaf * bandwidth of a node's NICs on that rail / oversubscription
//                     pod   = leaves_per_pod * trunks of one leaf group / oversubscription
// A non-blocking switch (NVSwitch, leaf, spine) is no link: only the ports into and out of it are.
//
// Which way: the cheapest path, where a link costs, by kind: NVLink 10, DRAM 10, trunk 50, PCIe 100, NVMe 100, socket
// 150, NIC port 500 (and within a node the wider of equals). So a message
//   - stays inside the node when it can;
//   - leaves by the NIC nearest to the source GPU and arrives by the one nearest to the destination GPU (their rails);
//   - between rails of one leaf group takes an NVLink hop to a GPU on the destination's rail where there is NVLink (as
//   NCCL's
//     PXN does), else crosses the spine; between leaf groups it crosses the spine anyway and needs no detour.
// Of NICs equally near, each GPU takes the least taken, so that 8 GPUs and 8 NICs pair up one to one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/plan/plan.h"

namespace foreshard {

struct NetworkLink {  // one direction
  LinkKind kind = LinkKind::Network;
  BytesPerSecond bandwidth = {};  // pooled: the sum over equal-cost parallel links
  Seconds latency = {};           // of the link and of the switch it leads to
  bool operator==(const NetworkLink&) const = default;
};

// The links of a route in order, without an allocation.
class RouteLinks {
 public:
  static constexpr int kMost = 28;  // two stretches of kMostInNode, two NIC ports, four trunks, two to spare
  static constexpr int kMostInNode = 10;
  void push_back(LinkId id) {
    FS_ASSERT(size_ < kMost);
    links_[static_cast<std::size_t>(size_++)] = id;
  }
  const LinkId* begin() const { return links_.data(); }
  const LinkId* end() const { return links_.data() + size_; }
  std::size_t size() const { return static_cast<std::size_t>(size_); }
  bool empty() const { return size_ == 0; }
  LinkId operator[](std::size_t i) const { return links_[i]; }
  bool operator==(const RouteLinks&) const = default;

 private:
  std::array<LinkId, kMost> links_ = {};
  int size_ = 0;
};

struct Route {
  RouteLinks links = {};          // empty: source and destination are the same device, or there is no such endpoint
  Seconds latency = {};           // sum over the links
  BytesPerSecond bandwidth = {};  // of the narrowest link; 0 without links
  bool operator==(const Route&) const = default;
};

enum class Endpoint : std::uint8_t { Gpu, HostMemory, Nvme };

class Network {
 public:
  explicit Network(const Cluster& cluster);  // throws Error when the parts of a node are not joined
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  int links() const;
  NetworkLink link(LinkId id) const;
  std::string name(LinkId id) const;              // "node3/gpu5->nvswitch", "node0/nic2->leaf0.rail2", "leaf0.rail2->spine"
  Route route(DeviceId from, DeviceId to) const;  // GPU to GPU; made on the fly in O(length), well below a microsecond
  // Copies between a GPU and the memory or the NVMe drives nearest to it. Endpoint::Gpu, or an endpoint that the node
  // does not have: no links.
  Route host_route(DeviceId gpu, Endpoint end, bool to_device) const;
  int devices() const;
  int nodes() const;
  int node(DeviceId gpu) const;
  DeviceId first_device(int node) const;
  const Gpu& gpu(DeviceId device) const;
  const NodeShape& node_shape(int node) const;
  int nic(DeviceId gpu) const;  // index in its node of the NIC nearest to it; -1: none
  const Cluster& cluster() const;
  // The shape of the fabric and where its links stand in the order of ids.
  int rails() const;
  int leaf_groups() const;  // rails() leaves each
  int pods() const;         // 0 with fewer than three levels
  int leaf_group(int node) const;
  LinkId first_link(int node) const;  // 2 i + direction: link i of the shape; then 2 j + direction: port of NIC j, down = 1
  LinkId leaf_trunk(int leaf_group, int rail, bool down) const;
  LinkId pod_trunk(int pod, bool down) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

// What a phase of a collective does to the network, for one instance of a group: one coupled flow, simulated as one
// transfer. The flow carries `bytes` over every entry of `links` (a link crossed k times is listed k times) after
// `steps` latencies:
//   time alone = steps * step_latency + bytes * max over links (times listed / bandwidth)
struct CollectiveFlow {
  std::vector<LinkId> links = {};
  double bytes = 0;           // per link entry
  int steps = 0;              // latency steps: 2(n-1) for a ring all-reduce, n-1 for reduce-scatter and all-gather
  Seconds step_latency = {};  // largest route latency between neighbours
};

// The phases of a collective, played one after the other; none for one member. Nearly all have one phase. Of the full
// tensor S and n members:
//   Ring          all-reduce 2(n-1)/n S over every edge, reduce-scatter and all-gather half of it; broadcast from and
//   reduce to
//                 the first member: S along a chain; all-to-all: S is what one member holds, S/n goes the way of every
//                 ordered pair, n-1 steps
//   Tree          all-reduce: up and down a binary tree of nodes with a chain inside each node, S over each edge and
//                 direction, 2(depth + chain - 1) steps, depth = floor(log2 nodes). DoubleTree: half of the data on
//                 each of two mirrored trees. Other kinds: Ring
//   Hierarchical  the members of each node reduce-scatter, the holders of equal shards ring-reduce across nodes, the members
//                 all-gather: three phases, two for a reduce-scatter or all-gather. Needs two nodes with equally many
//                 members, at least 2; else, and for other kinds: Ring
//   ParameterServer  all-reduce: the first k members (Collective::servers, default 1) serve S/k each; all push, then
//                 all pull, two phases: server port (n-1) S/k in, then out. Other kinds: Ring
//   GatherToRoot  the same with the first member alone
//   TwoDimensional  as Hierarchical, on the squarest grid of the members in their order (core/network/collective_rounds.h), whose
//                 rows may cross nodes. Needs two rows; else, and for other kinds: Ring
//   NvlinkSharp   the switch adds: (n+1)/n S through each port and direction for an all-reduce (Hot Chips 34, "The NVLink-Network
//                 Switch": N+1 slices instead of 2N), S for reduce-scatter and all-gather, which use one direction
//                 fully and are charged for both. Members of one node whose switch can do it; else, and for other
//                 kinds: Ring
//
// A ring across nodes passes every node once. When several GPUs of a node take part, the data is spread evenly over as
// many rings as their GPUs have NICs (NCCL: one ring per channel): ring c enters each node at the member nearest to NIC
// c, runs through the node's other members and leaves at the neighbour of its entry, so every NIC carries 1/C of the
// volume and the picture is the same for every rotation of the members. In a node whose GPUs are joined by direct
// NVLinks (a mesh) the rings follow those links, widest first and in both directions (NCCL's ring search), each with
// the share that its links allow.
std::vector<CollectiveFlow> collective_phases(const Network& network, const Collective& collective,
                                              const std::vector<DeviceId>& members);

// Bytes that leave the busiest member, all phases together, and latency steps, for n members of n different nodes
// (NvlinkSharp: of one node) and `bytes` of full tensor.
struct CollectiveVolume {
  double bytes = 0;
  int steps = 0;
};
CollectiveVolume collective_volume(CollectiveKind kind, Algorithm algorithm, Bytes bytes, int members);

// The rings of a group (see above): orders of devices, each carrying `shares` of the sum of all shares.
struct RingOrder {
  std::vector<DeviceId> order = {};
  int shares = 1;
};
std::vector<RingOrder> ring_orders(const Network& network, std::vector<DeviceId> members);
// The first of them: crosses node borders as rarely as possible.
std::vector<DeviceId> ring_order(const Network& network, std::vector<DeviceId> members);

}  // namespace foreshard
