#include "core/network/network.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "core/network/network_shape.h"

namespace foreshard {

namespace {
struct NodeRun {  // consecutive nodes of one shape
  int first_node = 0, first_device = 0, first_link = 0;
  int gpu = 0;  // index into Cluster::gpus
};

constexpr int kMostLeaves = 1 << 20;

struct Place {  // a device or a NIC
  int group = 0, node = 0, local = 0;
};
}  // namespace

struct Network::Graph {
  Cluster cluster;
  std::vector<NodeRun> groups;
  std::vector<ShapeRoutes> shapes;                        // one per group
  int nodes = 0, devices = 0, node_links = 0, links = 0;  // links: node_links and the trunks
  int rails = 0, nodes_per_leaf = 1, leaf_groups = 0, pods = 0;
  std::vector<BytesPerSecond> leaf_trunk, pod_trunk;  // per leaf (group * rails + rail), per pod

  int every = 1;  // Network::with_every_nic

  Graph(const Cluster& source, int every_nic);
  static std::shared_ptr<const Graph> of(const Cluster& cluster, int every_nic);
  void size_trunks();

  // Which group a node, device or link belongs to: the last one that begins at or before it.
  int group_of(int value, int NodeRun::*first) const {
    if (groups.size() == 1) return 0;
    const auto after = std::upper_bound(groups.begin(), groups.end(), value,
                                        [first](int v, const NodeRun& group) { return v < group.*first; });
    return static_cast<int>(after - groups.begin()) - 1;
  }
  const NodeRun& group(int g) const { return groups[static_cast<std::size_t>(g)]; }
  const ShapeRoutes& shape(int g) const { return shapes[static_cast<std::size_t>(g)]; }

  Place place(DeviceId device) const {
    FS_ASSERT(device.value >= 0 && device.value < devices);
    const int g = group_of(device.value, &NodeRun::first_device), at = device.value - group(g).first_device;
    return {g, group(g).first_node + at / shape(g).gpus(), at % shape(g).gpus()};
  }
  int base(const Place& at) const {
    return group(at.group).first_link + (at.node - group(at.group).first_node) * shape(at.group).links();
  }
  int leaf_group(int node) const { return node / nodes_per_leaf; }
  int leaf(int node, int rail) const { return leaf_group(node) * rails + rail; }
  int leaf_link(int leaf, bool down) const { return node_links + 2 * leaf + (down ? 1 : 0); }
  int pod_link(int pod, bool down) const {
    return node_links + 2 * static_cast<int>(leaf_trunk.size()) + 2 * pod + (down ? 1 : 0);
  }

  void walk(Route& route, const Place& at, const NodePath& path, bool backwards) const;
  static void cross(Route& route, int id, const NetworkLink& link);
  void choose_nics(const Place& from, const Place& to, int& out, int& in) const;
  void through_fabric(Route& route, const Place& from, const Place& to) const;
  NetworkLink port(int group, bool down) const;  // between a NIC of this group's nodes and its leaf
  NetworkLink leaf_uplink(int leaf) const;
  NetworkLink pod_uplink(int pod) const;
  NetworkLink link(int id) const;
};

Network::Graph::Graph(const Cluster& source, int every_nic) : cluster(source), every(every_nic) {
  const Fabric& fabric = cluster.fabric;
  if (fabric.nodes_per_leaf < 1 || fabric.leaves_per_pod < 1 || fabric.levels < 1 || fabric.levels > 3 ||
      !(fabric.oversubscription > 0) || !(fabric.switch_latency.value >= 0))
    throw Error(cluster.name, "fabric", "a number out of range",
                "1 to 3 levels, at least one node per leaf and leaf per pod, oversubscription above 0");
  for (const NodeGroup& node : cluster.nodes) rails = std::max(rails, rails_of(node.shape, fabric.rail_optimised));
  std::int64_t all = 0;
  for (const NodeGroup& node : cluster.nodes) {
    shapes.emplace_back(node.shape, cluster.name, rails, fabric.rail_optimised, every);
    const auto gpu =
        std::find_if(cluster.gpus.begin(), cluster.gpus.end(), [&](const Gpu& known) { return known.name == node.shape.gpu; });
    if (gpu == cluster.gpus.end())
      throw Error(cluster.name, "node shape " + node.shape.name, "GPU '" + node.shape.gpu + "'", "one of Cluster::gpus");
    groups.push_back({nodes, devices, static_cast<int>(all), static_cast<int>(gpu - cluster.gpus.begin())});
    if (node.count < 1) throw Error(cluster.name, "nodes", std::to_string(node.count), "at least 1 node");
    all += static_cast<std::int64_t>(node.count) * shapes.back().links();
    if (all > std::numeric_limits<std::int32_t>::max() / 2)
      throw Error(cluster.name, "nodes", std::to_string(node.count), "a cluster of fewer parts");
    nodes += node.count;
    devices += node.count * node.shape.gpus;
  }
  node_links = static_cast<int>(all);
  if (devices == 0) throw Error(cluster.name, "nodes", "no GPU", "at least one node");
  if (nodes > 1)
    for (const ShapeRoutes& shape : shapes)
      for (int gpu = 0; gpu < shape.gpus(); ++gpu)
        if (shape.own_nic(gpu) < 0)
          throw Error(cluster.name, "nics", "no NIC that gpu" + std::to_string(gpu) + " can reach",
                      "at least one in each of several nodes");
  nodes_per_leaf = fabric.levels == 1 ? nodes : fabric.nodes_per_leaf;
  size_trunks();
  links = node_links + 2 * static_cast<int>(leaf_trunk.size() + pod_trunk.size());
}

void Network::Graph::size_trunks() {
  const Fabric& fabric = cluster.fabric;
  leaf_groups = static_cast<int>(ceil_div(nodes, nodes_per_leaf));
  if (static_cast<std::int64_t>(leaf_groups) * rails > kMostLeaves)
    throw Error(cluster.name, "fabric.nodes_per_leaf", std::to_string(nodes_per_leaf),
                "more: no more than " + std::to_string(kMostLeaves) + " leaves in all");
  leaf_trunk.assign(static_cast<std::size_t>(leaf_groups) * static_cast<std::size_t>(rails), {});
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const NodeGroup& node = cluster.nodes[g];
    for (int l = leaf_group(groups[g].first_node); l <= leaf_group(groups[g].first_node + node.count - 1); ++l)
      for (int rail = 0; rail < rails; ++rail) {
        BytesPerSecond& trunk = leaf_trunk[static_cast<std::size_t>(l * rails + rail)];
        trunk = std::max(trunk,
                         node.shape.nic_bandwidth * (shapes[g].nics_on_rail(rail) * nodes_per_leaf / fabric.oversubscription));
      }
  }
  // If no node of a leaf group has this rail, its leaf is never used; its trunk still gets a bandwidth above 0.
  const BytesPerSecond widest = leaf_trunk.empty() ? BytesPerSecond{} : *std::max_element(leaf_trunk.begin(), leaf_trunk.end());
  for (BytesPerSecond& trunk : leaf_trunk)
    if (trunk.value == 0) trunk = widest;
  if (fabric.levels < 3) return;
  pods = static_cast<int>(ceil_div(leaf_groups, fabric.leaves_per_pod));
  pod_trunk.assign(static_cast<std::size_t>(pods), {});
  for (int l = 0; l < leaf_groups; ++l) {  // a pod that is not full still has the uplinks of a full one
    double sum = 0;
    for (int rail = 0; rail < rails; ++rail) sum += leaf_trunk[static_cast<std::size_t>(l * rails + rail)].value;
    BytesPerSecond& trunk = pod_trunk[static_cast<std::size_t>(l / fabric.leaves_per_pod)];
    trunk = std::max(trunk, BytesPerSecond{sum * fabric.leaves_per_pod / fabric.oversubscription});
  }
}

NetworkLink Network::Graph::port(int group, bool down) const {
  const NodeShape& node = cluster.nodes[static_cast<std::size_t>(group)].shape;
  return {LinkKind::Network, node.nic_bandwidth, down ? node.nic_latency : node.nic_latency + cluster.fabric.switch_latency};
}
NetworkLink Network::Graph::leaf_uplink(int leaf) const {
  return {LinkKind::Network, leaf_trunk[static_cast<std::size_t>(leaf)], cluster.fabric.switch_latency};
}
NetworkLink Network::Graph::pod_uplink(int pod) const {
  return {LinkKind::Network, pod_trunk[static_cast<std::size_t>(pod)], cluster.fabric.switch_latency};
}

NetworkLink Network::Graph::link(int id) const {
  if (id >= node_links) {
    const int trunk = (id - node_links) / 2, leaves = static_cast<int>(leaf_trunk.size());
    return trunk < leaves ? leaf_uplink(trunk) : pod_uplink(trunk - leaves);
  }
  const int g = group_of(id, &NodeRun::first_link), code = (id - group(g).first_link) % shape(g).links();
  if (code >= shape(g).nic_port(0, false)) return port(g, code & 1);
  const NodeLink& local = cluster.nodes[static_cast<std::size_t>(g)].shape.links[static_cast<std::size_t>(code / 2)];
  return {local.kind, local.bandwidth, local.latency};
}

// ---- routes
// ---------------------------------------------------------------------------------------------------------------

void Network::Graph::walk(Route& route, const Place& at, const NodePath& path, bool backwards) const {
  const int first = base(at);
  const auto codes = shape(at.group).codes(path);
  if (backwards)
    for (auto code = codes.rbegin(); code != codes.rend(); ++code) route.links.push_back({first + (*code ^ 1)});
  else
    for (const std::int32_t code : codes) route.links.push_back({first + code});
  if (codes.empty()) return;
  route.latency += path.latency;
  route.bandwidth = std::min(route.bandwidth, path.bandwidth);
  route.rate = std::min(route.rate, path.rate);
}

void Network::Graph::cross(Route& route, int id, const NetworkLink& link) {
  route.links.push_back({id});
  route.latency += link.latency;
  route.bandwidth = std::min(route.bandwidth, link.bandwidth);
  route.rate = std::min(route.rate, link.rate());
}

// The NICs of the cheapest route: the GPUs' own NICs, with a trunk if needed; or, inside one leaf group, NICs of one rail.
void Network::Graph::choose_nics(const Place& from, const Place& to, int& out, int& in) const {
  const ShapeRoutes &a = shape(from.group), &b = shape(to.group);
  out = a.own_nic(from.local);
  in = b.own_nic(to.local);
  if (leaf_group(from.node) != leaf_group(to.node) || a.rail(out) == b.rail(in)) return;
  const int own_out = out, own_in = in;
  std::int64_t least =
      a.to_nic(from.local, out).cost + b.to_nic(to.local, in).cost + 2 * route_cost(LinkKind::Network, {}, true);
  const auto consider = [&](int rail) {
    const std::int64_t cost = a.cost_on_rail(from.local, rail) + b.cost_on_rail(to.local, rail);
    if (cost >= least) return;
    int x = a.nic_on_rail(from.local, rail), y = b.nic_on_rail(to.local, rail);
    // Among equally near NICs of the rail, the choice depends on the number of the far end, so that pairs spread over all of them.
    if (y < a.nics() && a.rail(y) == rail && a.to_nic(from.local, y).cost == a.to_nic(from.local, x).cost &&
        a.to_nic(from.local, y).exists() && x != own_out)
      x = y;
    else if (x < b.nics() && b.rail(x) == rail && b.to_nic(to.local, x).cost == b.to_nic(to.local, y).cost &&
             b.to_nic(to.local, x).exists() && y != own_in)
      y = x;
    least = cost, out = x, in = y;
  };
  consider(b.rail(own_in));
  consider(a.rail(own_out));
  for (int rail = 0; rail < rails; ++rail) consider(rail);
}

void Network::Graph::through_fabric(Route& route, const Place& from, const Place& to) const {
  int out = -1, in = -1;
  choose_nics(from, to, out, in);
  const ShapeRoutes &a = shape(from.group), &b = shape(to.group);
  const int up = leaf(from.node, a.rail(out)), down = leaf(to.node, b.rail(in));
  walk(route, from, a.to_nic(from.local, out), false);
  cross(route, base(from) + a.nic_port(out, false), port(from.group, false));
  if (up != down) {
    const int per_pod = cluster.fabric.leaves_per_pod;
    const int pod_up = leaf_group(from.node) / per_pod, pod_down = leaf_group(to.node) / per_pod;
    cross(route, leaf_link(up, false), leaf_uplink(up));
    if (pods > 0 && pod_up != pod_down) {
      cross(route, pod_link(pod_up, false), pod_uplink(pod_up));
      cross(route, pod_link(pod_down, true), pod_uplink(pod_down));
    }
    cross(route, leaf_link(down, true), leaf_uplink(down));
  }
  cross(route, base(to) + b.nic_port(in, true), port(to.group, true));
  walk(route, to, b.to_nic(to.local, in), true);
}

Route Network::route(DeviceId from, DeviceId to) const {
  Route route;
  if (from == to) return route;
  route.bandwidth = route.rate = {std::numeric_limits<double>::infinity()};
  const Place a = graph_->place(from), b = graph_->place(to);
  if (a.node == b.node)
    graph_->walk(route, a, graph_->shape(a.group).to_gpu(a.local, b.local), false);
  else
    graph_->through_fabric(route, a, b);
  return route;
}

Route Network::host_route(DeviceId gpu, Endpoint end, bool to_device) const {
  const Place at = graph_->place(gpu);
  const ShapeRoutes& shape = graph_->shape(at.group);
  if (end == Endpoint::Gpu) return {};
  const NodePath& path = end == Endpoint::HostMemory ? shape.to_memory(at.local) : shape.to_nvme(at.local);
  Route route;
  if (!path.exists() || path.count == 0) return route;
  route.bandwidth = route.rate = {std::numeric_limits<double>::infinity()};
  graph_->walk(route, at, path, to_device);
  return route;
}

// ---- look-ups
// -------------------------------------------------------------------------------------------------------------

// Lowering, costs and simulation of a plan ask for the same network one after the other, and a search does so for each strategy: the graphs
// asked for last are kept.
std::shared_ptr<const Network::Graph> Network::Graph::of(const Cluster& cluster, int every_nic) {
  constexpr std::size_t kKept = 8;
  static std::mutex mutex;
  static std::vector<std::shared_ptr<const Graph>> kept;
  const auto find = [&] {
    return std::ranges::find_if(kept,
                                [&](const auto& graph) { return graph->every == every_nic && graph->cluster == cluster; });
  };
  {
    const std::lock_guard lock(mutex);
    if (const auto known = find(); known != kept.end()) return *known;
  }
  auto made = std::make_shared<const Graph>(cluster, every_nic);
  const std::lock_guard lock(mutex);
  if (find() == kept.end()) kept.insert(kept.begin(), made);
  if (kept.size() > kKept) kept.pop_back();
  return made;
}

Network::Network(const Cluster& cluster) : graph_(Graph::of(cluster, 1)) {}
Network Network::with_every_nic(int every) const { return Network(Graph::of(graph_->cluster, every)); }
int Network::most_nics() const {
  int most = 0;
  for (const ShapeRoutes& shape : graph_->shapes) most = std::max(most, shape.nics());
  return most;
}

double link_share(LinkKind kind) {
  if (kind == LinkKind::NvLink) return 1;
  return kind == LinkKind::Network ? 0.94 : 0.88;
}

int Network::links() const { return graph_->links; }
NetworkLink Network::link(LinkId id) const {
  FS_ASSERT(id.value >= 0 && id.value < links());
  return graph_->link(id.value);
}
int Network::devices() const { return graph_->devices; }
int Network::nodes() const { return graph_->nodes; }
int Network::node(DeviceId gpu) const { return graph_->place(gpu).node; }
DeviceId Network::first_device(int node) const {
  const int g = graph_->group_of(node, &NodeRun::first_node);
  const NodeRun& group = graph_->group(g);
  return {group.first_device + (node - group.first_node) * graph_->shape(g).gpus()};
}
const Gpu& Network::gpu(DeviceId device) const {
  return graph_->cluster.gpus[static_cast<std::size_t>(graph_->group(graph_->place(device).group).gpu)];
}
const NodeShape& Network::node_shape(int node) const {
  return graph_->cluster.nodes[static_cast<std::size_t>(graph_->group_of(node, &NodeRun::first_node))].shape;
}
int Network::nic(DeviceId gpu) const {
  const Place at = graph_->place(gpu);
  return graph_->shape(at.group).own_nic(at.local);
}
std::int64_t Network::nic_cost(DeviceId gpu) const {
  const Place at = graph_->place(gpu);
  const ShapeRoutes& shape = graph_->shape(at.group);
  const int nic = shape.own_nic(at.local);
  return nic < 0 ? 0 : shape.to_nic(at.local, nic).cost;
}
const Cluster& Network::cluster() const { return graph_->cluster; }
int Network::rails() const { return graph_->rails; }
int Network::leaf_groups() const { return graph_->leaf_groups; }
int Network::pods() const { return graph_->pods; }
int Network::leaf_group(int node) const { return graph_->leaf_group(node); }
LinkId Network::first_link(int node) const {
  const int g = graph_->group_of(node, &NodeRun::first_node);
  return {graph_->base({g, node, 0})};
}
LinkId Network::leaf_trunk(int leaf_group, int rail, bool down) const {
  return {graph_->leaf_link(leaf_group * graph_->rails + rail, down)};
}
LinkId Network::pod_trunk(int pod, bool down) const { return {graph_->pod_link(pod, down)}; }

static std::string leaf_name(int leaf, int rails) {
  return "leaf" + std::to_string(leaf / rails) + ".rail" + std::to_string(leaf % rails);
}

static std::string arrow(const std::string& low, const std::string& high, bool down) {
  return down ? high + "->" + low : low + "->" + high;
}

static std::string trunk_name(int trunk, int leaves, int rails, int leaves_per_pod, bool pods, bool down) {
  const bool leaf = trunk < leaves;
  const int pod = leaf ? trunk / rails / leaves_per_pod : trunk - leaves;
  const std::string spine = (pods ? "pod" + std::to_string(pod) + "." : "") + "spine";
  return leaf ? arrow(leaf_name(trunk, rails), spine, down) : arrow(spine, "core", down);
}

std::string Network::name(LinkId id) const {
  const Graph& graph = *graph_;
  FS_ASSERT(id.value >= 0 && id.value < links());
  if (const int trunk = id.value - graph.node_links; trunk >= 0)
    return trunk_name(trunk / 2, static_cast<int>(graph.leaf_trunk.size()), graph.rails, graph.cluster.fabric.leaves_per_pod,
                      graph.pods > 0, trunk % 2 == 1);
  const int g = graph.group_of(id.value, &NodeRun::first_link), at = id.value - graph.group(g).first_link;
  const ShapeRoutes& shape = graph.shape(g);
  const NodeShape& node = graph.cluster.nodes[static_cast<std::size_t>(g)].shape;
  const int code = at % shape.links(), node_number = graph.group(g).first_node + at / shape.links();
  const bool down = code % 2 == 1;
  const std::string prefix = "node" + std::to_string(node_number) + "/";
  if (code < shape.nic_port(0, false)) {
    const NodeLink& link = node.links[static_cast<std::size_t>(code / 2)];
    const auto part = [&](int i) { return node.parts[static_cast<std::size_t>(i)].name; };
    return prefix + arrow(part(link.from), part(link.to), down);
  }
  const int nic = (code - shape.nic_port(0, false)) / 2;
  return arrow(prefix + "nic" + std::to_string(nic), leaf_name(graph.leaf(node_number, shape.rail(nic)), graph.rails), down);
}

}  // namespace foreshard
