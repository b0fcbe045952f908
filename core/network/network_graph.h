// The expanded graph of a cluster: every part and every one-way link. Used to draw clusters and to check routes; no simulation uses it.
#pragma once

#include <string>
#include <vector>

#include "core/network/network.h"

namespace foreshard {

struct ClusterGraph {
  struct Vertex {
    PartKind kind = PartKind::Gpu;
    std::string name = {};
    int node = -1;         // -1: fabric
    DeviceId device = {};  // of a GPU; invalid for other parts
  };
  struct Edge {
    int from = 0, to = 0;  // vertices
    LinkId link = {};
  };
  std::vector<Vertex> vertices = {};  // node by node in the order of NodeShape::parts, then leaves, spines, the core
  std::vector<Edge> edges = {};
};
ClusterGraph expand(const Network& network);

}  // namespace foreshard
