// Reads the short form of a node (docs/clusters.md).
#include <algorithm>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/cluster/cluster_json.h"

namespace foreshard {

namespace {
constexpr BytesPerSecond kDefaultMemory{204.8e9};     // per socket: eight channels of DDR4-3200, 25.6 GB/s each
constexpr BytesPerSecond kDefaultSocketLink{62.4e9};  // three UPI links of 10.4 GT/s, 20.8 GB/s each
constexpr int kMostInMesh = 32;
constexpr Seconds kDefaultNvlinkLatency{0.6e-6}, kDefaultNicLatency{0.3e-6};  // see cluster_build.cpp

void read_nvlink(const JsonReader& json, ShortNode& node) {
  json.only({"kind", "bandwidth", "latency", "sharp", "pairs"});
  node.nvlink = json.at("kind").as_choice({"switch", "mesh"}) == "switch" ? ShortNode::Nvlink::Switch : ShortNode::Nvlink::Mesh;
  node.nvlink_bandwidth = link_bandwidth(json.at("bandwidth"));
  if (const auto time = json.find("latency")) node.nvlink_latency = short_time(*time);
  const auto sharp = json.find("sharp"), pairs = json.find("pairs");
  if (sharp) node.sharp = sharp->as_bool();
  if (node.sharp && node.nvlink != ShortNode::Nvlink::Switch) sharp->fail("false: only a switch can reduce");
  if (node.nvlink == ShortNode::Nvlink::Mesh && node.gpus < 2) json.at("kind").fail("\"switch\": a mesh needs two GPUs");
  if (node.nvlink == ShortNode::Nvlink::Mesh && node.gpus > kMostInMesh && !pairs)
    json.at("kind").fail("\"switch\", or pairs: all to all is for at most " + std::to_string(kMostInMesh) + " GPUs");
  if (!pairs) return;
  if (node.nvlink != ShortNode::Nvlink::Mesh) pairs->fail("no pairs: they belong to kind \"mesh\"");
  if (!pairs->is_array() || pairs->size() == 0) pairs->fail("a list of [gpu, gpu] or [gpu, gpu, links]");
  for (const JsonReader& pair : pairs->elements()) {
    if (!pair.is_array() || pair.size() < 2 || pair.size() > 3) pair.fail("[gpu, gpu] or [gpu, gpu, links]");
    const int a = small_int(pair.at(0), 0, node.gpus - 1), b = small_int(pair.at(1), 0, node.gpus - 1);
    if (a == b) pair.fail("two different GPUs");
    node.pairs.push_back({a, b, pair.size() == 3 ? small_int(pair.at(2), 1, 64) : 1});
  }
}

void read_pcie(const JsonReader& json, ShortNode& node) {
  json.only({"bandwidth", "switches", "gpus_per_switch", "uplink", "c2c"});
  node.pcie_bandwidth = link_bandwidth(json.at("bandwidth"));
  if (const auto switches = json.find("switches")) node.switches = small_int(*switches, 0, node.gpus);
  if (const auto per_switch = json.find("gpus_per_switch")) {
    const int below = small_int(*per_switch, 1, node.gpus);
    const int needed = static_cast<int>(ceil_div(node.gpus, below));
    if (json.has("switches") && node.switches != needed)
      per_switch->fail("a number that agrees with " + std::to_string(node.switches) + " switches for " +
                       std::to_string(node.gpus) + " GPUs");
    node.switches = needed;
  }
  node.uplink_bandwidth = node.pcie_bandwidth;
  if (const auto uplink = json.find("uplink")) node.uplink_bandwidth = link_bandwidth(*uplink);
  if (const auto c2c = json.find("c2c")) node.c2c_bandwidth = link_bandwidth(*c2c);
}

void read_nics(const JsonReader& json, ShortNode& node) {
  json.only({"count", "bandwidth", "latency", "at", "rails"});
  node.nics = small_int(json.at("count"), 1, kMostGpus);
  node.nic_bandwidth = link_bandwidth(json.at("bandwidth"));
  node.nic_latency = kDefaultNicLatency;
  if (const auto time = json.find("latency")) node.nic_latency = short_time(*time);
  if (const auto at = json.find("at")) node.nics_at_socket = at->as_choice({"switch", "socket"}) == "socket";
  node.rails = node.nics;
  if (const auto rails = json.find("rails")) node.rails = small_int(*rails, 1, node.nics);
}
}  // namespace

NodeShape read_quote(const JsonReader& json, const std::string& name, const std::vector<Gpu>& own) {
  ShortNode node{.name = name, .nvlink_latency = kDefaultNvlinkLatency};
  node.gpu = gpu_name(json.at("gpu"), own);
  node.gpus = small_int(json.at("gpus_per_node"), 1, kMostGpus);
  if (const auto count = json.find("sockets"))
    node.sockets = small_int(*count, 1, 64);
  else
    node.sockets = node.gpus > 1 ? 2 : 1;
  if (const auto nvlink = json.find("nvlink")) read_nvlink(*nvlink, node);
  read_pcie(json.at("pcie"), node);
  if (const auto nics = json.find("nics")) read_nics(*nics, node);
  if (const auto link = json.find("socket_link"))
    node.socket_bandwidth = link_bandwidth(*link);
  else if (node.sockets > 1 && node.c2c_bandwidth.value == 0)
    node.socket_bandwidth = kDefaultSocketLink;
  if (const auto count = json.find("cores")) node.cores = small_int(*count, 0, 100000);
  if (const auto size = json.find("host_memory"))
    node.memory = bytes_between(*size, {0}, {std::int64_t{1} << 50}, "a memory of at most 1 PiB");
  node.memory_bandwidth = kDefaultMemory * node.sockets;
  if (const auto bus = json.find("host_memory_bandwidth")) node.memory_bandwidth = link_bandwidth(*bus);
  if (const auto nvme = json.find("nvme")) {
    nvme->only({"capacity", "bandwidth", "queue_depth", "block", "latency"});
    node.nvme = bytes_between(nvme->at("capacity"), {0}, {std::int64_t{1} << 50}, "at most 1 PiB");
    node.nvme_bandwidth = link_bandwidth(nvme->at("bandwidth"));
    if (const auto depth = nvme->find("queue_depth")) node.nvme_queue.depth = small_int(*depth, 1, 65536);
    if (const auto block = nvme->find("block"))
      node.nvme_queue.block = bytes_between(*block, {512}, {1 << 30}, "512 bytes to 1 GiB");
    if (const auto time = nvme->find("latency")) node.nvme_queue.latency = short_time(*time);
  }
  return build_shape(node);
}

std::vector<std::string> quote_keys() {
  return {"gpu",         "gpus_per_node",         "nvlink", "pcie", "nics", "sockets", "socket_link", "cores",
          "host_memory", "host_memory_bandwidth", "nvme"};
}

int small_int(const JsonReader& json, int least, int most) { return static_cast<int>(json.as_int(least, most)); }

std::string gpu_name(const JsonReader& json, const std::vector<Gpu>& own) {
  std::vector<std::string> known = shipped("topologies/gpus");
  for (const Gpu& gpu : own) known.push_back(gpu.name);
  std::string name = json.as_string();
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  const std::string near = nearest_name(name, known);
  json.fail("a GPU of the catalogue or of \"gpus\"" + (near.empty() ? "" : ", perhaps '" + near + "'"));
}

BytesPerSecond link_bandwidth(const JsonReader& json) {
  const BytesPerSecond bandwidth = json.as_bandwidth();
  if (!(bandwidth.value >= 1e6 && bandwidth.value <= 1e15)) json.fail("a bandwidth of 1 MB/s to 1 PB/s");
  return bandwidth;
}

Seconds short_time(const JsonReader& json) {
  const Seconds time = json.as_seconds();
  if (!(time.value >= 0 && time.value <= 1)) json.fail("a time of 0 to 1 s");
  return time;
}

Bytes bytes_between(const JsonReader& json, Bytes least, Bytes most, const std::string& expected) {
  const Bytes bytes = json.as_bytes();
  if (bytes < least || bytes > most) json.fail(expected);
  return bytes;
}

}  // namespace foreshard
