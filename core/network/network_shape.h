// Routes inside one node shape, found once by Dijkstra's algorithm; every node of that shape uses them. Internal to core/network.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/network/network.h"

namespace foreshard {

// The cost of a link in the search for the cheapest path (core/network/network.h). `trunk`: a fabric link above the NIC port.
std::int64_t route_cost(LinkKind kind, BytesPerSecond bandwidth, bool trunk);

// A path inside a node. Its links are codes, ShapeRoutes::codes: 2 * index of the NodeLink, + 1 if the path crosses it from `to` to `from`.
struct NodePath {
  std::int32_t first = 0;   // position of its first link among all codes
  std::int32_t count = -1;  // number of links; -1: there is no path
  std::int64_t cost = 0;
  Seconds latency = {};
  BytesPerSecond bandwidth = {}, rate = {};  // as Route's
  bool exists() const { return count >= 0; }
};

class ShapeRoutes {
 public:
  // Throws Error, which names `cluster`, if an index is out of range, a number is not positive or a GPU cannot be reached.
  // `every`: GPUs use only each so-many-th NIC, or all if a GPU reaches none of those.
  ShapeRoutes(const NodeShape& shape, const std::string& cluster, int rails, bool rail_optimised, int every = 1);

  int gpus() const { return gpus_; }
  int nics() const { return nics_; }
  int links() const { return 2 * local_links_ + 2 * nics_; }  // one-way links of one node, NIC ports included
  int nic_port(int nic, bool down) const { return 2 * (local_links_ + nic) + (down ? 1 : 0); }

  const NodePath& to_gpu(int from, int to) const { return to_gpu_[index(from, to, gpus_)]; }
  const NodePath& to_nic(int gpu, int nic) const { return to_nic_[index(gpu, nic, nics_)]; }
  const NodePath& to_memory(int gpu) const { return to_memory_[static_cast<std::size_t>(gpu)]; }
  const NodePath& to_nvme(int gpu) const { return to_nvme_[static_cast<std::size_t>(gpu)]; }
  std::span<const std::int32_t> codes(const NodePath& path) const {
    return {codes_.data() + path.first, static_cast<std::size_t>(path.count)};
  }

  // The NIC that a GPU uses; -1: none.
  int own_nic(int gpu) const { return own_nic_.empty() ? -1 : own_nic_[static_cast<std::size_t>(gpu)]; }
  int nic_on_rail(int gpu, int rail) const { return nic_on_rail_[index(gpu, rail, rails_)]; }  // nearest; -1: none
  // The cost of the path to that NIC. None: so much that the sum of two costs is above any other.
  static constexpr std::int64_t kNoNic = std::numeric_limits<std::int64_t>::max() / 2;
  std::int64_t cost_on_rail(int gpu, int rail) const { return cost_on_rail_[index(gpu, rail, rails_)]; }
  int rail(int nic) const { return rail_of_nic_[static_cast<std::size_t>(nic)]; }
  double nics_on_rail(int rail) const;

 private:
  static std::size_t index(int row, int column, int columns) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
  }
  struct Tree;
  std::int32_t link_between(const NodeShape& shape, int from, int to) const;
  NodePath stretch(const NodeShape& shape, const Tree& tree, int part);
  NodePath mirrored(const NodePath& path);
  void to_gpus(const NodeShape& shape, const std::string& cluster, const Tree& tree);
  std::vector<NodePath> to_all(const NodeShape& shape, const Tree& tree, const std::vector<int>& parts);
  bool usable(int gpu, int nic) const { return nic % every_ == 0 && to_nic(gpu, nic).exists(); }
  void choose_own_nics();
  void choose_nics();
  void prefer_owners();

  int gpus_ = 0, nics_ = 0, local_links_ = 0, rails_ = 0, every_ = 1;
  std::vector<std::vector<int>> links_of_;  // per part
  std::vector<std::int32_t> codes_;
  std::vector<NodePath> to_gpu_, to_nic_, to_memory_, to_nvme_;
  std::vector<int> own_nic_, nic_on_rail_, rail_of_nic_;
  std::vector<std::int64_t> cost_on_rail_;
};

int rails_of(const NodeShape& shape, bool rail_optimised);  // 1 + the highest rail of its NICs

}  // namespace foreshard
