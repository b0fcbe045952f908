#include "core/cluster/cluster_slice.h"

#include "core/base/error.h"

namespace foreshard {

// Links refer to parts by index, and GPUs come first: removing GPUs lowers the indices of the parts behind them.
static NodeShape first_gpus(const NodeShape& whole, int gpus) {
  NodeShape shape = whole;
  const int gone = whole.gpus - gpus;
  shape.gpus = gpus;
  shape.parts.erase(shape.parts.begin() + gpus, shape.parts.begin() + whole.gpus);
  const auto removed = [&](int part) { return part >= gpus && part < whole.gpus; };
  std::erase_if(shape.links, [&](const NodeLink& link) { return removed(link.from) || removed(link.to); });
  for (NodeLink& link : shape.links) {
    if (link.from >= whole.gpus) link.from -= gone;
    if (link.to >= whole.gpus) link.to -= gone;
  }
  return shape;
}

Cluster with_first_gpus(Cluster cluster, int gpus) {
  FS_ASSERT(node_count(cluster) == 1 && gpus >= 1 && gpus <= gpu_count(cluster));
  NodeShape& shape = cluster.nodes.front().shape;
  if (gpus < shape.gpus) shape = first_gpus(shape, gpus);
  return cluster;
}

}  // namespace foreshard
