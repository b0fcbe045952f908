// Network: the links of a Cluster, routes over them, and the load that a collective puts on each link. Nothing here simulates time.
//
// The expanded graph is never built: routes inside a node are found once per node shape (Dijkstra), routes through the fabric by
// arithmetic, and a LinkId is a formula of (node, local link, direction). Each direction of a link has its own LinkId. The order of ids:
//
//   node 0: local links (up, down) ... NIC ports (up, down) ... | node 1: ... | leaf trunks (up, down) ... | pod trunks ...
//
// The equal-cost parallel links of the fat tree are pooled into one trunk per (leaf, direction) and, with three levels, one
// per (pod, direction):   trunk = nodes_per_leaf * bandwidth of a node's NICs on that rail / oversubscription
//                     pod   = leaves_per_pod * trunks of one leaf group / oversubscription
// A non-blocking switch (NVSwitch, leaf, spine) is no link: only the ports into and out of it are.
//
// A route is the cheapest path. A link costs, by kind: NVLink 10, DRAM 10, trunk 50, PCIe 100, NVMe 100, socket 150, NIC port 500. Among
// equal paths inside a node the one with more bandwidth is taken. So a message
//   - stays inside the node when it can;
//   - leaves by the NIC nearest to the source GPU and arrives by the one nearest to the destination GPU (their rails);
//   - between rails of one leaf group takes an NVLink hop to a GPU on the destination's rail if there is NVLink (as NCCL's
//     PXN does), else crosses the spine; between leaf groups it crosses the spine anyway and needs no detour.
// Among equally near NICs, each GPU takes the one that the fewest GPUs use, so 8 GPUs and 8 NICs pair up one to one. GPUs with only one
// nearest NIC come first.
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

// Share of a link's datasheet rate that transfers over it reach: 0.94 of a NIC's line rate (headers and credits), 0.88 of PCIe's encoded rate
// and of the host's links (copy engines to and from pinned memory; H200: 55.4 of 63 GB/s). NVLink: 1, for its share depends on who sends
// (strategy/cost/collective_cost.h).
double link_share(LinkKind kind);

struct NetworkLink {  // one direction
  LinkKind kind = LinkKind::Network;
  BytesPerSecond bandwidth = {};                                        // pooled: the sum over equal-cost parallel links
  Seconds latency = {};                                                 // of the link and of the switch it leads to
  BytesPerSecond rate() const { return bandwidth * link_share(kind); }  // that transfers reach
  bool operator==(const NetworkLink&) const = default;
};

// The links of a route in order, in a fixed array: no allocation.
class RouteLinks {
 public:
  static constexpr int kMost = 28;  // two paths of kMostInNode links inside nodes, two NIC ports, four trunks, two spare
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
  RouteLinks links = {};          // empty: source and destination are the same device, or the endpoint does not exist
  Seconds latency = {};           // sum over the links
  BytesPerSecond bandwidth = {};  // the least of the links; 0 without links
  BytesPerSecond rate = {};       // the least that transfers reach on the links; 0 without links
  bool operator==(const Route&) const = default;
};

enum class Endpoint : std::uint8_t { Gpu, HostMemory, Nvme };

class Network {
 public:
  explicit Network(const Cluster& cluster);  // throws Error if the parts of a node are not connected

  int links() const;
  NetworkLink link(LinkId id) const;
  std::string name(LinkId id) const;              // "node3/gpu5->nvswitch", "node0/nic2->leaf0.rail2", "leaf0.rail2->spine"
  Route route(DeviceId from, DeviceId to) const;  // GPU to GPU; computed in O(length)
  // The route of copies between a GPU and the host memory or NVMe drives nearest to it; `to_device`: towards the GPU. No links for
  // Endpoint::Gpu and for an endpoint that the node does not have.
  Route host_route(DeviceId gpu, Endpoint end, bool to_device) const;
  int devices() const;
  int nodes() const;
  int node(DeviceId gpu) const;
  DeviceId first_device(int node) const;
  const Gpu& gpu(DeviceId device) const;
  const NodeShape& node_shape(int node) const;
  int nic(DeviceId gpu) const;                // the NIC that it uses, as an index in its node; -1: none
  std::int64_t nic_cost(DeviceId gpu) const;  // of the path to that NIC, as routes count it (above); it has one
  const Cluster& cluster() const;
  // The fabric, and the ids of its links.
  int rails() const;
  int leaf_groups() const;  // a leaf group: the rails() leaves that serve the same nodes
  int pods() const;         // 0 with fewer than three levels
  int leaf_group(int node) const;
  // The ids of a node's links follow this one: first 2 i + direction for link i of its shape, then 2 j + direction for the port of NIC j.
  // direction: 0 up, 1 down.
  LinkId first_link(int node) const;
  LinkId leaf_trunk(int leaf_group, int rail, bool down) const;
  LinkId pod_trunk(int pod, bool down) const;

  // The same links, of which the GPUs use only each `every`-th NIC of their node (all if a GPU reaches none of those).
  Network with_every_nic(int every) const;
  int most_nics() const;  // of a node

  bool same_as(const Network& other) const { return graph_ == other.graph_; }  // whether both are of one cluster

 private:
  struct Graph;
  explicit Network(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {}
  std::shared_ptr<const Graph> graph_;  // of this cluster's other networks, too
};

// The load of one phase of a collective, for one instance of a group. It is simulated as one transfer over all its links at once: after
// `steps` latencies the flow carries `bytes` over every entry of `links` (a link crossed k times is listed k times). Its isolated time:
//   time = steps * step_latency + bytes * max over links (times listed / bandwidth)
struct CollectiveFlow {
  std::vector<LinkId> links = {};
  double bytes = 0;           // per link entry
  int steps = 0;              // latency steps: 2(n-1) for a ring all-reduce, n-1 for reduce-scatter and all-gather
  Seconds step_latency = {};  // largest route latency between neighbours
};

// A link of a flow, how often the flow crosses it, and for how long the flow alone keeps it busy.
struct BusyLink {
  LinkId id = {};
  int times = 0;
  Seconds busy = {};
};
std::vector<BusyLink> busy_links(const Network& network, const CollectiveFlow& flow);  // by rising id

// The phases of a collective, which follow one another; most collectives have one, and a group of one member has none. For n members and a
// full tensor of S bytes:
//   Ring          all-reduce 2(n-1)/n S over every edge, reduce-scatter and all-gather half of that; broadcast from
//                 and reduce to the first member: S along a chain; all-to-all: S is what one member holds, S/n takes the route
//                 of every ordered pair, n-1 steps
//   Tree          all-reduce: up and down a binary tree of nodes with a chain inside each node, S over each edge and
//                 direction, 2(depth + chain - 1) steps, depth = floor(log2 nodes). DoubleTree: half of the data on
//                 each of two mirrored trees. Other kinds: Ring
//   Hierarchical  the members of each node reduce-scatter, the holders of equal shards all-reduce in a ring across nodes, the members of
//                 each node all-gather: three phases, two for a reduce-scatter or all-gather. Needs at least two nodes, with the same
//                 number of members, at least 2; else, and for other kinds: Ring
//   ParameterServer  all-reduce: k members (Collective::servers, default 1; those of Collective::served_by, or the first ones) serve
//                 S/k each; all push, then all pull, two phases: server port (n-1) S/k in, then out. If all members serve, a reduce-scatter is the
//                 first phase and an all-gather the second. Other kinds: Ring
//   GatherToRoot  the same with the first member as the only server
//   TwoDimensional  as Hierarchical, on the squarest grid of the members in their order (core/network/collective_rounds.h), whose
//                 rows may cross nodes. Needs two rows; else, and for other kinds: Ring
//   NvlinkSharp   the switch reduces: (n+1)/n S through each port and direction for an all-reduce (Hot Chips 34, "The NVLink-Network
//                 Switch": N+1 slices instead of 2N), S for reduce-scatter and all-gather, which use one direction
//                 fully and are charged for both. Needs all members in one node whose switch can
//                 reduce; else, and for other kinds: Ring
//
// A ring across nodes passes every node once. When several GPUs of a node take part, the data is spread evenly over as many rings as
// their GPUs have NICs (NCCL: one ring per channel): ring c enters each node at the member nearest to NIC c, runs through the node's
// other members and leaves by NIC c again if another member uses it, else at a neighbour of its entry: the nearer one to NIC c or, where
// both are as near, the one by which fewer rings leave. So each of the C NICs carries 1/C of the volume, whatever member comes first. In a
// node whose GPUs are joined by direct NVLinks (a mesh) the rings follow those links, widest first and in both directions (NCCL's ring
// search), each with the share that its links allow; across nodes the rings take these cycles in turn.
std::vector<CollectiveFlow> collective_phases(const Network& network, const Collective& collective,
                                              const std::vector<DeviceId>& members);

// Bytes that leave the busiest member and number of latency steps, over all phases, if every member is on a node of its own (NvlinkSharp:
// all on one node). `bytes`: of the full tensor.
struct CollectiveVolume {
  double bytes = 0;
  int steps = 0;
};
CollectiveVolume collective_volume(CollectiveKind kind, Algorithm algorithm, Bytes bytes, int members);

// The rings of a group (see above). Each is an order of devices and carries the fraction `shares` / (sum of all shares) of the data.
struct RingOrder {
  std::vector<DeviceId> order = {};
  int shares = 1;
};
std::vector<RingOrder> ring_orders(const Network& network, std::vector<DeviceId> members);
// The first of these rings. It crosses the borders between nodes as rarely as possible.
std::vector<DeviceId> ring_order(const Network& network, std::vector<DeviceId> members);

}  // namespace foreshard
