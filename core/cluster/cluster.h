// Cluster: GPUs, switches, sockets, NICs and the links between them. A cluster has one or more groups of equal nodes, joined by a fat tree
// that may be rail-optimised. core/network expands it into the graph of all parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/ids.h"
#include "core/base/units.h"

namespace foreshard {

// One GPU model of the catalogue. Peaks are dense (without structured sparsity).
struct Gpu {
  std::string name = {};
  std::string architecture = {};                                                               // one of gpu_architectures()
  std::string source = {};                                                                     // where the numbers come from
  FlopsPerSecond fp64 = {}, fp32 = {}, tf32 = {}, fp16 = {}, bf16 = {}, fp8 = {}, nvfp4 = {};  // 0: not supported in hardware
  FlopsPerSecond vector_fp32 = {};                                                             // non-tensor-core peak
  Bytes memory = {};                                                                           // HBM or GDDR capacity
  BytesPerSecond memory_bandwidth = {};
  Bytes l2_cache = {};
  int sm_count = 0;
  double clock_ghz = 0;
  Seconds launch_overhead = {};  // from the launch on the host to the start of the kernel, per kernel
  double power_watts = 0;        // board power, 0: unknown
  bool flash_attention = true;   // a flash-attention kernel exists for it
  bool operator==(const Gpu&) const = default;
};
// The peak for a format; where the GPU does not support it, that of the format used in its place. Integers: vector_fp32.
FlopsPerSecond peak(const Gpu& gpu, DType type);
// The architectures that a GPU's entry may name. Only for "volta" to "blackwell" were predictions compared with measurements. The kernels of
// the others, "other" included, are predicted with default constants. "host" is a processor.
const std::vector<std::string>& gpu_architectures();
Gpu load_gpu(const std::string& name);                                 // from the catalogue topologies/gpus; throws Error
Gpu parse_gpu(const std::string& text, const std::string& file_name);  // throws Error
std::string to_json(const Gpu& gpu);

enum class PartKind : std::uint8_t { Gpu, NvSwitch, PcieSwitch, Cpu, Dram, Nvme, Nic, Leaf, Spine, Core };
enum class LinkKind : std::uint8_t { NvLink, Pcie, CpuToCpu, DramBus, NvmeBus, Network };  // CpuToCpu: also NVLink-C2C

// A bidirectional link between two parts of a node. `from` and `to` are indices into NodeShape::parts.
struct NodeLink {
  int from = 0, to = 0;
  LinkKind kind = LinkKind::Pcie;
  BytesPerSecond bandwidth = {};  // per direction, as the datasheet states it
  Seconds latency = {};
  bool operator==(const NodeLink&) const = default;
};
struct Part {
  PartKind kind = PartKind::Gpu;
  std::string name = {};  // "gpu0", "nvswitch", "nic3"
  int rail = -1;          // of a NIC: the rail that it is on
  bool operator==(const Part&) const = default;
};
struct NodeShape {
  std::string name = {};
  std::string gpu = {};  // catalogue name
  int gpus = 0;          // parts[0 .. gpus-1] are the GPUs, in local index order
  std::vector<Part> parts = {};
  std::vector<NodeLink> links = {};
  int nics = 0;
  BytesPerSecond nic_bandwidth = {};  // of each NIC, per direction
  Seconds nic_latency = {};
  int cpu_cores = 0;                          // of the node
  Bytes host_memory = {};                     // of the node
  BytesPerSecond host_memory_bandwidth = {};  // of the node
  Bytes nvme = {};                            // capacity of the node's drives
  bool nvlink_sharp = false;                  // the NVSwitch can reduce (NVLS)
  bool operator==(const NodeShape&) const = default;
};

// Fabric between nodes. Rail r joins NIC r of all nodes; a leaf serves `nodes_per_leaf` nodes of one rail.
struct Fabric {
  int levels = 2;  // 1: all nodes on one leaf per rail; 2: leaf-spine; 3: leaf-spine-core
  int nodes_per_leaf = 32;
  int leaves_per_pod = 32;        // three levels: leaf groups (leaves of all rails of the same nodes) below one set of spines
  double oversubscription = 1.0;  // of each level above the leaves: bandwidth below / bandwidth above
  Seconds switch_latency = {};    // per switch crossed
  bool rail_optimised = true;     // false: all NICs of a node on one leaf
  bool operator==(const Fabric&) const = default;
};

struct NodeGroup {
  NodeShape shape = {};
  int count = 1;
  bool operator==(const NodeGroup&) const = default;
};

struct Cluster {
  std::string name = {};
  std::string source = {};
  std::vector<Gpu> gpus = {};         // the catalogue entries used, one per distinct NodeShape::gpu
  std::vector<NodeGroup> nodes = {};  // in device order
  Fabric fabric = {};
  double price_per_gpu_hour = 0;   // 0: unknown
  double power_per_gpu_watts = 0;  // whole-system share per GPU, 0: unknown
  bool operator==(const Cluster&) const = default;
};

int gpu_count(const Cluster& cluster);
int node_count(const Cluster& cluster);
const Gpu& gpu_of(const Cluster& cluster, const std::string& name);  // the entry of Cluster::gpus with this name

// The cluster that a file's text describes (docs/clusters.md). Does not check that the parts of a node are connected: core/cluster_file
// does that. Throws Error.
Cluster read_cluster(const std::string& text, const std::string& file_name);
Cluster with_nodes(Cluster cluster,
                   int nodes);  // with `nodes` nodes and "-xN" in its name; throws Error if it has several node groups
// Every part and link spelled out; read_cluster(to_json(c)) == c.
std::string to_json(const Cluster& cluster);

}  // namespace foreshard
