// What collectives put on the links; formulas in core/network/network.h.
#include <algorithm>
#include <bit>
#include <charconv>

#include "core/network/collective_rounds.h"
#include "core/network/network.h"

namespace foreshard {

namespace {
using Devices = std::vector<DeviceId>;

class FlowBuilder {
 public:
  explicit FlowBuilder(const Network& network) : network_(network) {}
  void hop(DeviceId from, DeviceId to, int times = 1) {
    const Route route = network_.route(from, to);
    for (int i = 0; i < times; ++i) flow_.links.insert(flow_.links.end(), route.links.begin(), route.links.end());
    flow_.step_latency = max(flow_.step_latency, route.latency);
  }
  CollectiveFlow done(double bytes, int steps) {
    flow_.bytes = bytes;
    flow_.steps = steps;
    return std::move(flow_);
  }

 private:
  const Network& network_;
  CollectiveFlow flow_;
};

double full(const Collective& collective) { return static_cast<double>(collective.bytes.value); }

// Closed rings. `volume` crosses every edge, spread over the rings by their shares.
CollectiveFlow closed_ring(const Network& network, const std::vector<RingOrder>& rings, double volume, int steps) {
  FlowBuilder flow(network);
  int shares = 0;
  for (const RingOrder& ring : rings) {
    shares += ring.shares;
    for (std::size_t i = 0; i < ring.order.size(); ++i)
      flow.hop(ring.order[i], ring.order[(i + 1) % ring.order.size()], ring.shares);
  }
  return flow.done(volume / std::max(1, shares), steps);
}

// Rings opened at the root: broadcast away from it, reduce towards it.
CollectiveFlow chain(const Network& network, std::vector<RingOrder> rings, DeviceId root, bool towards, double volume) {
  FlowBuilder flow(network);
  int shares = 0;
  std::size_t n = 0;
  for (RingOrder& ring : rings) {
    n = ring.order.size();
    std::rotate(ring.order.begin(), std::find(ring.order.begin(), ring.order.end(), root), ring.order.end());
    if (towards) std::rotate(ring.order.begin(), ring.order.begin() + 1, ring.order.end());
    shares += ring.shares;
    for (std::size_t i = 0; i + 1 < n; ++i) flow.hop(ring.order[i], ring.order[i + 1], ring.shares);
  }
  return flow.done(volume / std::max(1, shares), static_cast<int>(n) - 1);
}

CollectiveFlow all_to_all(const Network& network, const Devices& members, double held) {
  FlowBuilder flow(network);
  for (const DeviceId from : members)
    for (const DeviceId to : members)
      if (from != to) flow.hop(from, to);
  const int n = static_cast<int>(members.size());
  return flow.done(held / n, n - 1);
}

CollectiveFlow ring(const Network& network, const Collective& collective, const Devices& members) {
  const std::vector<RingOrder> rings = ring_orders(network, members);
  const int n = static_cast<int>(members.size());
  const double volume = collective_volume(collective.kind, Algorithm::Ring, collective.bytes, n).bytes;
  switch (collective.kind) {
    case CollectiveKind::AllReduce: return closed_ring(network, rings, volume, 2 * (n - 1));
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather: return closed_ring(network, rings, volume, n - 1);
    case CollectiveKind::Broadcast: return chain(network, rings, members.front(), false, volume);
    case CollectiveKind::Reduce: return chain(network, rings, members.front(), true, volume);
    case CollectiveKind::AllToAll: return all_to_all(network, members, full(collective));
  }
  return {};
}

int depth_of(int nodes) { return static_cast<int>(std::bit_width(static_cast<unsigned>(nodes))) - 1; }

// The members of each node, in the order of a ring.
std::vector<Devices> by_node(const Network& network, const Devices& order) {
  std::vector<Devices> nodes;
  for (const DeviceId member : order) {
    if (nodes.empty() || network.node(nodes.back().front()) != network.node(member)) nodes.emplace_back();
    nodes.back().push_back(member);
  }
  return nodes;
}

// Node i hangs below node (i-1)/2; the second tree counts the nodes from the end, so that inner nodes of one are leaves
// of the other (Sanders, Speck, Traeff 2009). The chain of a node hangs below its head, the member at which its ring
// enters.
CollectiveFlow tree(const Network& network, const Collective& collective, const Devices& members, bool two) {
  FlowBuilder flow(network);
  const std::vector<RingOrder> rings = ring_orders(network, members);
  int shares = 0, steps = 0;
  for (const RingOrder& ring : rings) {
    std::vector<Devices> nodes = by_node(network, ring.order);
    for (int mirrored = 0; mirrored < (two ? 2 : 1); ++mirrored) {
      shares += ring.shares;
      const auto both = [&](DeviceId a, DeviceId b) { flow.hop(a, b, ring.shares), flow.hop(b, a, ring.shares); };
      std::size_t longest = 1;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (i > 0) both(nodes[i].front(), nodes[(i - 1) / 2].front());
        for (std::size_t j = 1; j < nodes[i].size(); ++j) both(nodes[i][j - 1], nodes[i][j]);
        longest = std::max(longest, nodes[i].size());
      }
      steps = 2 * (depth_of(static_cast<int>(nodes.size())) + static_cast<int>(longest) - 1);
      std::reverse(nodes.begin(), nodes.end());
    }
  }
  return flow.done(full(collective) / std::max(1, shares), steps);
}

// Rings inside the rows and rings along the columns of a grid of members: the rows first where something is added, the columns first where
// something is spread. `inside`: the hops of all rows, each of `shares` rings.
std::vector<CollectiveFlow> grid(const Network& network, const Collective& collective, const std::vector<Devices>& rows,
                                 FlowBuilder inside, int shares) {
  const bool splits = collective.kind != CollectiveKind::AllGather, joins = collective.kind != CollectiveKind::ReduceScatter;
  const bool reduces = collective.kind == CollectiveKind::AllReduce;
  const std::size_t k = rows.front().size(), m = rows.size();
  const int inner = static_cast<int>(k), outer = static_cast<int>(m);
  const CollectiveFlow within = inside.done(full(collective) * (inner - 1) / inner / shares, inner - 1);
  FlowBuilder across(network);
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t row = 0; row < m; ++row) across.hop(rows[row][i], rows[(row + 1) % m][i]);
  const CollectiveFlow between =
      across.done(full(collective) / inner * (reduces ? 2 : 1) * (outer - 1) / outer, (reduces ? 2 : 1) * (outer - 1));
  std::vector<CollectiveFlow> phases;
  if (splits) phases.push_back(within);
  phases.push_back(between);
  if (joins) phases.push_back(within);
  return phases;
}

bool has_grid(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather;
}

std::vector<CollectiveFlow> hierarchical(const Network& network, const Collective& collective, const Devices& members) {
  Devices sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const std::vector<Devices> nodes = by_node(network, sorted);
  const std::size_t k = nodes.front().size();
  const bool equal = std::all_of(nodes.begin(), nodes.end(), [&](const Devices& node) { return node.size() == k; });
  if (k < 2 || nodes.size() < 2 || !equal || !has_grid(collective.kind)) return {ring(network, collective, members)};
  FlowBuilder inside(network);
  int shares = 0;
  for (const Devices& node : nodes) {
    shares = 0;
    for (const RingOrder& ring : ring_orders(network, node)) {
      shares += ring.shares;
      for (std::size_t i = 0; i < k; ++i) inside.hop(ring.order[i], ring.order[(i + 1) % k], ring.shares);
    }
  }
  return grid(network, collective, nodes, std::move(inside), shares);
}

// The grid of core/network/collective_rounds.h, whatever nodes its members are on.
std::vector<CollectiveFlow> two_dimensional(const Network& network, const Collective& collective, const Devices& members) {
  const auto columns = static_cast<std::size_t>(grid_columns(static_cast<int>(members.size())));
  if (columns == members.size() || !has_grid(collective.kind)) return {ring(network, collective, members)};
  std::vector<Devices> rows;
  for (std::size_t i = 0; i < members.size(); i += columns)
    rows.emplace_back(members.begin() + static_cast<std::ptrdiff_t>(i),
                      members.begin() + static_cast<std::ptrdiff_t>(i + columns));
  FlowBuilder inside(network);
  for (const Devices& row : rows)
    for (std::size_t i = 0; i < columns; ++i) inside.hop(row[i], row[(i + 1) % columns]);
  return grid(network, collective, rows, std::move(inside), 1);
}

std::vector<CollectiveFlow> parameter_server(const Network& network, const Collective& collective, const Devices& members,
                                             int servers) {
  if (collective.kind != CollectiveKind::AllReduce) return {ring(network, collective, members)};
  servers = std::clamp(servers, 1, static_cast<int>(members.size()));
  FlowBuilder push(network), pull(network);
  for (int s = 0; s < servers; ++s)
    for (const DeviceId worker : members) {
      push.hop(worker, members[static_cast<std::size_t>(s)]);
      pull.hop(members[static_cast<std::size_t>(s)], worker);
    }
  return {push.done(full(collective) / servers, 1), pull.done(full(collective) / servers, 1)};
}

// Each port once: from every member to the next, the NVLink port links out of the one and into the other.
std::vector<CollectiveFlow> nvlink_sharp(const Network& network, const Collective& collective, const Devices& members) {
  const int node = network.node(members.front());
  const bool reduces = collective.kind == CollectiveKind::AllReduce;
  const bool known =
      reduces || collective.kind == CollectiveKind::ReduceScatter || collective.kind == CollectiveKind::AllGather;
  const bool together =
      std::all_of(members.begin(), members.end(), [&](DeviceId member) { return network.node(member) == node; });
  if (!known || !together || !network.node_shape(node).nvlink_sharp) return {ring(network, collective, members)};
  FlowBuilder flow(network);
  for (std::size_t i = 0; i < members.size(); ++i) flow.hop(members[i], members[(i + 1) % members.size()]);
  const int n = static_cast<int>(members.size());
  const CollectiveVolume volume = collective_volume(collective.kind, Algorithm::NvlinkSharp, collective.bytes, n);
  return {flow.done(volume.bytes, volume.steps)};
}

CollectiveVolume ring_volume(CollectiveKind kind, double bytes, int n) {
  const double part = bytes * (n - 1) / n;
  switch (kind) {
    case CollectiveKind::AllReduce: return {2 * part, 2 * (n - 1)};
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather:
    case CollectiveKind::AllToAll: return {part, n - 1};
    case CollectiveKind::Broadcast:
    case CollectiveKind::Reduce: return {bytes, n - 1};
  }
  return {};
}
}  // namespace

std::vector<CollectiveFlow> collective_phases(const Network& network, const Collective& collective, const Devices& members) {
  if (members.size() < 2) return {};
  switch (collective.algorithm) {
    case Algorithm::Ring: return {ring(network, collective, members)};
    case Algorithm::Tree:
    case Algorithm::DoubleTree:
      if (collective.kind != CollectiveKind::AllReduce) return {ring(network, collective, members)};
      return {tree(network, collective, members, collective.algorithm == Algorithm::DoubleTree)};
    case Algorithm::Hierarchical: return hierarchical(network, collective, members);
    case Algorithm::ParameterServer: return parameter_server(network, collective, members, collective.servers);
    case Algorithm::NvlinkSharp: return nvlink_sharp(network, collective, members);
    case Algorithm::TwoDimensional: return two_dimensional(network, collective, members);
    case Algorithm::GatherToRoot: return parameter_server(network, collective, members, 1);
  }
  return {};
}

// Trees, n nodes: the busiest node of one tree has a parent (n > 4), or is the root with its two children (n > 2). In
// two mirrored trees it is a leaf of the other one, with half of the data in each: n = 2: 1 + 1, n <= 4: 2 + 1, above:
// 3 + 1 halves.
CollectiveVolume collective_volume(CollectiveKind kind, Algorithm algorithm, Bytes size, int n) {
  if (n < 2) return {};
  const double bytes = static_cast<double>(size.value);
  const bool reduces = kind == CollectiveKind::AllReduce;
  const int edges = n == 2 ? 1 : n <= 4 ? 2 : 3;
  switch (algorithm) {
    case Algorithm::Ring:
    case Algorithm::Hierarchical: return ring_volume(kind, bytes, n);
    case Algorithm::TwoDimensional: {
      const int columns = grid_columns(n), rows = n / columns;
      CollectiveVolume volume = ring_volume(kind, bytes, n);
      if (rows > 1 && has_grid(kind)) volume.steps = (reduces ? 2 : 1) * (columns - 1 + rows - 1);
      return volume;
    }
    case Algorithm::Tree: return reduces ? CollectiveVolume{bytes * edges, 2 * depth_of(n)} : ring_volume(kind, bytes, n);
    case Algorithm::DoubleTree:
      return reduces ? CollectiveVolume{bytes * (edges + 1) / 2, 2 * depth_of(n)} : ring_volume(kind, bytes, n);
    case Algorithm::GatherToRoot:
    case Algorithm::ParameterServer: return reduces ? CollectiveVolume{bytes * (n - 1), 2} : ring_volume(kind, bytes, n);
    case Algorithm::NvlinkSharp:
      if (reduces) return {bytes * (n + 1) / n, 2};
      if (kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather) return {bytes, 1};
      return ring_volume(kind, bytes, n);
  }
  return {};
}

}  // namespace foreshard
