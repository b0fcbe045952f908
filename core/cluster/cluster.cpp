#include "core/cluster/cluster.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/cluster/cluster_json.h"

namespace foreshard {

int gpu_count(const Cluster& cluster) {
  int count = 0;
  for (const NodeGroup& group : cluster.nodes) count += group.count * group.shape.gpus;
  return count;
}

int node_count(const Cluster& cluster) {
  int count = 0;
  for (const NodeGroup& group : cluster.nodes) count += group.count;
  return count;
}

const Gpu& gpu_of(const Cluster& cluster, const std::string& name) {
  const auto found = std::find_if(cluster.gpus.begin(), cluster.gpus.end(), [&](const Gpu& gpu) { return gpu.name == name; });
  FS_ASSERT(found != cluster.gpus.end());
  return *found;
}

Cluster with_nodes(Cluster cluster, int nodes) {
  if (cluster.nodes.size() != 1)
    throw Error(cluster.name, "nodes", std::to_string(cluster.nodes.size()) + " groups of nodes",
                "one group, to repeat it " + std::to_string(nodes) + " times");
  const int per_node = cluster.nodes.front().shape.gpus;
  const std::int64_t most = kMostClusterGpus / per_node;
  if (nodes < 1 || nodes > most)
    throw Error(cluster.name, "nodes", std::to_string(nodes),
                "1 to " + std::to_string(most) + ": at most " + std::to_string(kMostClusterGpus) + " GPUs, " +
                    std::to_string(per_node) + " a node");
  if (nodes > 1 && cluster.nodes.front().shape.nics == 0)
    throw Error(cluster.name, "nodes", std::to_string(nodes), "1: its nodes have no NIC");
  const std::string before = "-x" + std::to_string(cluster.nodes.front().count);
  if (cluster.name.ends_with(before)) cluster.name.resize(cluster.name.size() - before.size());
  cluster.nodes.front().count = nodes;
  cluster.name += "-x" + std::to_string(nodes);
  return cluster;
}

static void write_shape(JsonWriter& out, const NodeGroup& group) {
  const NodeShape& shape = group.shape;
  out.begin_object().field("name", shape.name).field("count", group.count).field("gpu", shape.gpu);
  if (shape.nics > 0) {
    out.key("nics").begin_object().field("bandwidth", shape.nic_bandwidth.value);
    out.field("latency", shape.nic_latency.value).end_object();
  }
  out.field("nvlink_sharp", shape.nvlink_sharp).field("cores", shape.cpu_cores).field("host_memory", shape.host_memory.value);
  if (shape.host_memory_bandwidth.value > 0) out.field("host_memory_bandwidth", shape.host_memory_bandwidth.value);
  out.field("nvme_capacity", shape.nvme.value);
  out.key("parts").begin_array();
  for (const Part& part : shape.parts) {
    out.begin_line_array().value(word_of(part.kind)).value(part.name);
    if (part.rail >= 0) out.value(part.rail);
    out.end_array();
  }
  out.end_array().key("links").begin_array();
  for (const NodeLink& link : shape.links) {
    const auto name = [&](int i) { return shape.parts[static_cast<std::size_t>(i)].name; };
    out.begin_line_array().value(name(link.from)).value(name(link.to)).value(word_of(link.kind));
    out.value(link.bandwidth.value).value(link.latency.value).end_array();
  }
  out.end_array().end_object();
}

std::string to_json(const Cluster& cluster) {
  JsonWriter out;
  out.begin_object().field("name", cluster.name).field("source", cluster.source);
  out.key("nodes").begin_array();
  for (const NodeGroup& group : cluster.nodes) write_shape(out, group);
  out.end_array().key("fabric").begin_object();
  const Fabric& fabric = cluster.fabric;
  out.field("levels", fabric.levels).field("nodes_per_leaf", fabric.nodes_per_leaf);
  out.field("leaves_per_pod", fabric.leaves_per_pod).field("oversubscription", fabric.oversubscription);
  out.field("switch_latency", fabric.switch_latency.value).field("rail_optimised", fabric.rail_optimised);
  out.end_object();
  if (cluster.price_per_gpu_hour > 0) out.field("price_per_gpu_hour", cluster.price_per_gpu_hour);
  if (cluster.power_per_gpu_watts > 0) out.field("power_per_gpu", cluster.power_per_gpu_watts);
  out.key("gpus").begin_array();
  for (const Gpu& gpu : cluster.gpus) write_gpu(out, gpu);
  return out.end_array().end_object().text();
}

}  // namespace foreshard
