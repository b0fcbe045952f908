#include "core/network/network_graph.h"

#include <algorithm>

namespace foreshard {

namespace {
class Expansion {
 public:
  explicit Expansion(const Network& network) : network_(network), fabric_(network.cluster().fabric) {}
  ClusterGraph build() {
    for (int node = 0; node < network_.nodes(); ++node) {
      first_part_.push_back(count());
      parts_of(node);
    }
    if (network_.rails() > 0) fabric();
    return std::move(graph_);
  }

 private:
  int count() const { return static_cast<int>(graph_.vertices.size()); }
  int vertex(PartKind kind, const std::string& name, int node = -1, DeviceId device = {}) {
    graph_.vertices.push_back({kind, name, node, device});
    return count() - 1;
  }
  void both_ways(int low, int high, LinkId up, LinkId down) {
    graph_.edges.push_back({low, high, up});
    graph_.edges.push_back({high, low, down});
  }

  void parts_of(int node) {
    const NodeShape& shape = network_.node_shape(node);
    const int first = count(), device = network_.first_device(node).value;
    for (int i = 0; i < static_cast<int>(shape.parts.size()); ++i) {
      const Part& part = shape.parts[static_cast<std::size_t>(i)];
      vertex(part.kind, part.name, node, part.kind == PartKind::Gpu ? DeviceId{device + i} : DeviceId{});
    }
    int id = network_.first_link(node).value;
    for (const NodeLink& link : shape.links) {
      both_ways(first + link.from, first + link.to, {id}, {id + 1});
      id += 2;
    }
  }

  // Leaves first, then the NIC ports to them, then what is above.
  void fabric() {
    const int rails = network_.rails(), groups = network_.leaf_groups(), leaves = count();
    for (int group = 0; group < groups; ++group)
      for (int rail = 0; rail < rails; ++rail)
        vertex(PartKind::Leaf, "leaf" + std::to_string(group) + ".rail" + std::to_string(rail));
    for (int node = 0; node < network_.nodes(); ++node) ports(node, leaves + network_.leaf_group(node) * rails);
    const int pods = std::max(1, network_.pods()), spines = count();
    for (int pod = 0; pod < pods; ++pod)
      vertex(PartKind::Spine, (network_.pods() > 0 ? "pod" + std::to_string(pod) + "." : "") + "spine");
    for (int group = 0; group < groups; ++group)
      for (int rail = 0; rail < rails; ++rail)
        both_ways(leaves + group * rails + rail, spines + (network_.pods() > 0 ? group / fabric_.leaves_per_pod : 0),
                  network_.leaf_trunk(group, rail, false), network_.leaf_trunk(group, rail, true));
    if (network_.pods() == 0) return;
    const int core = vertex(PartKind::Core, "core");
    for (int pod = 0; pod < pods; ++pod)
      both_ways(spines + pod, core, network_.pod_trunk(pod, false), network_.pod_trunk(pod, true));
  }

  void ports(int node, int first_leaf) {
    const NodeShape& shape = network_.node_shape(node);
    int id = network_.first_link(node).value + 2 * static_cast<int>(shape.links.size()), nic = 0;
    for (std::size_t i = 0; i < shape.parts.size(); ++i) {
      if (shape.parts[i].kind != PartKind::Nic) continue;
      const int rail = !fabric_.rail_optimised ? 0 : shape.parts[i].rail >= 0 ? shape.parts[i].rail : nic;
      both_ways(first_part_[static_cast<std::size_t>(node)] + static_cast<int>(i), first_leaf + rail, {id}, {id + 1});
      id += 2;
      ++nic;
    }
  }

  const Network& network_;
  const Fabric& fabric_;
  ClusterGraph graph_;
  std::vector<int> first_part_;
};
}  // namespace

ClusterGraph expand(const Network& network) { return Expansion(network).build(); }

}  // namespace foreshard
