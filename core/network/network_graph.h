// The cluster as a picture: every part and every one-way link, expanded. For views and for checking routes; nothing that
// simulates needs it.
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
    DeviceId device = {};  // of a GPU
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
