#include "core/network/network_shape.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <cmath>
#include <limits>

namespace foreshard {

namespace {
constexpr std::int64_t kUnit = 100000;  // one unit of the table in network.h; below it the bandwidth breaks ties

std::int64_t base_cost(LinkKind kind, bool trunk) {
  switch (kind) {
    case LinkKind::NvLink: return 10;
    case LinkKind::Pcie: return 100;
    case LinkKind::CpuToCpu: return 150;
    case LinkKind::DramBus: return 10;
    case LinkKind::NvmeBus: return 100;
    case LinkKind::Network: return trunk ? 50 : 500;
  }
  return 0;
}

using NodeGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                                        boost::property<boost::edge_weight_t, std::int64_t>>;

[[noreturn]] void bad_shape(const std::string& cluster, const NodeShape& shape, const std::string& found,
                            const std::string& expected) {
  throw Error(cluster, "node shape " + shape.name, found, expected);
}

void check_numbers(const NodeShape& shape, const std::string& cluster) {
  const int parts = static_cast<int>(shape.parts.size());
  if (shape.gpus < 1 || shape.gpus > parts)
    bad_shape(cluster, shape, std::to_string(shape.gpus) + " GPUs", "between 1 and the number of parts");
  for (int i = 0; i < parts; ++i)
    if ((shape.parts[static_cast<std::size_t>(i)].kind == PartKind::Gpu) != (i < shape.gpus))
      bad_shape(cluster, shape, "part " + std::to_string(i) + " of another kind", "the GPUs first, then the other parts");
  for (const NodeLink& link : shape.links) {
    if (link.from < 0 || link.to < 0 || link.from >= parts || link.to >= parts || link.from == link.to)
      bad_shape(cluster, shape, "a link from part " + std::to_string(link.from) + " to " + std::to_string(link.to),
                "two different parts of the node");
    if (!(link.bandwidth.value > 0) || !std::isfinite(link.bandwidth.value))
      bad_shape(cluster, shape, "a link of " + std::to_string(link.bandwidth.value) + " B/s", "a positive bandwidth");
    if (!(link.latency.value >= 0) || !std::isfinite(link.latency.value))
      bad_shape(cluster, shape, "a latency of " + std::to_string(link.latency.value) + " s", "0 or more");
  }
  if (shape.nics > 0 && (!(shape.nic_bandwidth.value > 0) || !std::isfinite(shape.nic_bandwidth.value)))
    bad_shape(cluster, shape, "a NIC of " + std::to_string(shape.nic_bandwidth.value) + " B/s", "a positive bandwidth");
}

std::vector<int> parts_of(const NodeShape& shape, PartKind kind) {
  std::vector<int> found;
  for (std::size_t i = 0; i < shape.parts.size(); ++i)
    if (shape.parts[i].kind == kind) found.push_back(static_cast<int>(i));
  return found;
}

int rail_of(const NodeShape& shape, int nic, int part, bool rail_optimised) {
  if (!rail_optimised) return 0;
  const int rail = shape.parts[static_cast<std::size_t>(part)].rail;
  return rail >= 0 ? rail : nic;
}
}  // namespace

std::int64_t route_cost(LinkKind kind, BytesPerSecond bandwidth, bool trunk) {
  const std::int64_t base = base_cost(kind, trunk) * kUnit;
  if (kind == LinkKind::Network) return base;
  return base + static_cast<std::int64_t>(std::min(9999.0, 1e13 / bandwidth.value));
}

int rails_of(const NodeShape& shape, bool rail_optimised) {
  int rails = 0, nic = 0;
  for (const int part : parts_of(shape, PartKind::Nic))
    rails = std::max(rails, 1 + rail_of(shape, nic++, part, rail_optimised));
  return rails;
}

// The cheapest paths from one GPU.
struct ShapeRoutes::Tree {
  int source = 0;
  std::vector<std::int64_t> cost;
  std::vector<int> before;  // [part]: the part before it on the path; itself: not reached, or the source

  Tree(const NodeGraph& graph, int gpu) : source(gpu), cost(boost::num_vertices(graph)), before(cost.size()) {
    const auto index = boost::get(boost::vertex_index, graph);
    boost::dijkstra_shortest_paths(graph, static_cast<std::size_t>(gpu),
                                   boost::predecessor_map(boost::make_iterator_property_map(before.begin(), index))
                                       .distance_map(boost::make_iterator_property_map(cost.begin(), index)));
  }
  bool reaches(int part) const { return part == source || before[static_cast<std::size_t>(part)] != part; }
};

// The cheapest link between neighbouring parts, as a code. It searches the links of the part that has fewer.
std::int32_t ShapeRoutes::link_between(const NodeShape& shape, int from, int to) const {
  std::int32_t best = -1;
  std::int64_t best_cost = std::numeric_limits<std::int64_t>::max();
  const auto& of_from = links_of_[static_cast<std::size_t>(from)];
  const auto& of_to = links_of_[static_cast<std::size_t>(to)];
  for (const int i : of_from.size() < of_to.size() ? of_from : of_to) {
    const NodeLink& link = shape.links[static_cast<std::size_t>(i)];
    const bool forward = link.from == from && link.to == to, backward = link.to == from && link.from == to;
    const std::int64_t cost = route_cost(link.kind, link.bandwidth, false);
    if ((forward || backward) && cost < best_cost) {
      best_cost = cost;
      best = 2 * i + (backward ? 1 : 0);
    }
  }
  return best;
}

NodePath ShapeRoutes::stretch(const NodeShape& shape, const Tree& tree, int part) {
  NodePath path;
  if (!tree.reaches(part)) return path;
  path.first = static_cast<std::int32_t>(codes_.size());
  path.count = 0;
  path.cost = tree.cost[static_cast<std::size_t>(part)];
  path.bandwidth = path.rate = {std::numeric_limits<double>::infinity()};
  for (int at = part; at != tree.source; at = tree.before[static_cast<std::size_t>(at)]) {
    const std::int32_t code = link_between(shape, tree.before[static_cast<std::size_t>(at)], at);
    const NodeLink& link = shape.links[static_cast<std::size_t>(code / 2)];
    codes_.push_back(code);
    ++path.count;
    path.latency += link.latency;
    path.bandwidth = std::min(path.bandwidth, link.bandwidth);
    path.rate = std::min(path.rate, link.bandwidth * link_share(link.kind));
  }
  std::reverse(codes_.begin() + path.first, codes_.end());
  return path;
}

NodePath ShapeRoutes::mirrored(const NodePath& path) {
  NodePath back = path;
  if (!path.exists()) return back;
  back.first = static_cast<std::int32_t>(codes_.size());
  for (std::int32_t i = path.count - 1; i >= 0; --i) codes_.push_back(codes_[static_cast<std::size_t>(path.first + i)] ^ 1);
  return back;
}

static NodePath cheapest(const std::vector<NodePath>& paths) {
  NodePath best;
  for (const NodePath& path : paths)
    if (path.exists() && (!best.exists() || path.cost < best.cost)) best = path;
  return best;
}

ShapeRoutes::ShapeRoutes(const NodeShape& shape, const std::string& cluster, int rails, bool rail_optimised, int every)
    : gpus_(shape.gpus), local_links_(static_cast<int>(shape.links.size())), rails_(rails), every_(every) {
  check_numbers(shape, cluster);
  NodeGraph graph(shape.parts.size());
  links_of_.resize(shape.parts.size());
  for (int i = 0; i < local_links_; ++i) {
    links_of_[static_cast<std::size_t>(shape.links[static_cast<std::size_t>(i)].from)].push_back(i);
    links_of_[static_cast<std::size_t>(shape.links[static_cast<std::size_t>(i)].to)].push_back(i);
  }
  for (const NodeLink& link : shape.links)
    boost::add_edge(static_cast<std::size_t>(link.from), static_cast<std::size_t>(link.to),
                    route_cost(link.kind, link.bandwidth, false), graph);
  const std::vector<int> nic_parts = parts_of(shape, PartKind::Nic), memories = parts_of(shape, PartKind::Dram),
                         drives = parts_of(shape, PartKind::Nvme);
  nics_ = static_cast<int>(nic_parts.size());
  if (nics_ != shape.nics)
    bad_shape(cluster, shape, std::to_string(nics_) + " NIC parts", std::to_string(shape.nics) + ", its number of NICs");
  for (int nic = 0; nic < nics_; ++nic)
    rail_of_nic_.push_back(rail_of(shape, nic, nic_parts[static_cast<std::size_t>(nic)], rail_optimised));

  to_gpu_.resize(static_cast<std::size_t>(gpus_) * static_cast<std::size_t>(gpus_));
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    const Tree tree(graph, gpu);
    to_gpus(shape, cluster, tree);
    const std::vector<NodePath> nic_paths = to_all(shape, tree, nic_parts);
    to_nic_.insert(to_nic_.end(), nic_paths.begin(), nic_paths.end());
    to_memory_.push_back(cheapest(to_all(shape, tree, memories)));
    to_nvme_.push_back(cheapest(to_all(shape, tree, drives)));
  }
  choose_nics();
  if (nics_ > 0) prefer_owners();
}

void ShapeRoutes::to_gpus(const NodeShape& shape, const std::string& cluster, const Tree& tree) {
  for (int other = tree.source; other < gpus_; ++other) {
    const NodePath path = stretch(shape, tree, other);
    if (!path.exists())
      bad_shape(cluster, shape, "no path from gpu" + std::to_string(tree.source) + " to gpu" + std::to_string(other),
                "links that join all GPUs");
    if (path.count > RouteLinks::kMostInNode)
      bad_shape(cluster, shape, "a path of " + std::to_string(path.count) + " links",
                "at most " + std::to_string(RouteLinks::kMostInNode) + " links between two parts");
    to_gpu_[index(tree.source, other, gpus_)] = path;
    to_gpu_[index(other, tree.source, gpus_)] = mirrored(path);
  }
}

// A part more than RouteLinks::kMostInNode links away counts as unreachable.
std::vector<NodePath> ShapeRoutes::to_all(const NodeShape& shape, const Tree& tree, const std::vector<int>& parts) {
  std::vector<NodePath> paths;
  for (const int part : parts) {
    paths.push_back(stretch(shape, tree, part));
    if (paths.back().count > RouteLinks::kMostInNode) paths.back().count = -1;
  }
  return paths;
}

// Each GPU takes the nearest NIC; of several equally near the one that the fewest GPUs use. GPUs with one nearest NIC come first.
void ShapeRoutes::choose_own_nics() {
  std::vector<int> taken(static_cast<std::size_t>(nics_));
  own_nic_.assign(static_cast<std::size_t>(gpus_), -1);
  for (const bool several : {false, true})
    for (int gpu = 0; gpu < gpus_; ++gpu) {
      int own = -1, as_near = 0;
      for (int nic = 0; nic < nics_; ++nic) {
        if (!usable(gpu, nic)) continue;
        const std::int64_t cost = to_nic(gpu, nic).cost, least = own < 0 ? cost + 1 : to_nic(gpu, own).cost;
        as_near = cost < least ? 1 : as_near + (cost == least ? 1 : 0);
        const bool fewer = own >= 0 && taken[static_cast<std::size_t>(nic)] < taken[static_cast<std::size_t>(own)];
        if (cost < least || (cost == least && fewer)) own = nic;
      }
      if (own < 0 || (as_near > 1) != several) continue;
      own_nic_[static_cast<std::size_t>(gpu)] = own;
      ++taken[static_cast<std::size_t>(own)];
    }
}

void ShapeRoutes::choose_nics() {
  if (nics_ == 0) return;
  choose_own_nics();
  if (every_ > 1 && std::ranges::count(own_nic_, -1) > 0) every_ = 1, choose_own_nics();
  nic_on_rail_.assign(static_cast<std::size_t>(gpus_) * static_cast<std::size_t>(rails_), -1);
  cost_on_rail_.assign(nic_on_rail_.size(), kNoNic);
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    const int own = own_nic(gpu);
    if (own < 0) continue;
    for (int nic = 0; nic < nics_; ++nic) {
      if (!usable(gpu, nic)) continue;
      int& nearest = nic_on_rail_[index(gpu, rail(nic), rails_)];
      const std::int64_t cost = to_nic(gpu, nic).cost;
      if (nearest < 0 || cost < to_nic(gpu, nearest).cost ||
          (cost == to_nic(gpu, nearest).cost && std::abs(nic - own) < std::abs(nearest - own)))
        nearest = nic;
      cost_on_rail_[index(gpu, rail(nic), rails_)] = to_nic(gpu, nearest).cost;
    }
  }
}

// If a GPU reaches a NIC through another GPU, uses the GPU that owns the NIC, unless that path costs more.
void ShapeRoutes::prefer_owners() {
  for (int owner = 0; owner < gpus_; ++owner) {
    const int nic = own_nic_[static_cast<std::size_t>(owner)];
    if (nic < 0) continue;
    const NodePath last = to_nic(owner, nic);
    for (int gpu = 0; gpu < gpus_; ++gpu) {
      const NodePath first = to_gpu(gpu, owner);
      NodePath& path = to_nic_[index(gpu, nic, nics_)];
      if (gpu == owner || !path.exists() || first.cost + last.cost != path.cost) continue;
      if (first.count + last.count > RouteLinks::kMostInNode) continue;
      path = first;
      path.first = static_cast<std::int32_t>(codes_.size());
      path.count = first.count + last.count;
      path.cost = first.cost + last.cost;
      path.latency = first.latency + last.latency;
      path.bandwidth = std::min(first.bandwidth, last.bandwidth), path.rate = std::min(first.rate, last.rate);
      for (std::int32_t i = 0; i < first.count; ++i) codes_.push_back(codes_[static_cast<std::size_t>(first.first + i)]);
      for (std::int32_t i = 0; i < last.count; ++i) codes_.push_back(codes_[static_cast<std::size_t>(last.first + i)]);
    }
  }
}

double ShapeRoutes::nics_on_rail(int rail) const {
  return static_cast<double>(std::count(rail_of_nic_.begin(), rail_of_nic_.end(), rail));
}

}  // namespace foreshard
