// Reading and writing clusters as JSON. Internal to core/cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/json/json.h"

namespace foreshard {

inline constexpr std::int64_t kMostClusterGpus = 1 << 20;

Gpu read_gpu(const JsonReader& json);
void write_gpu(JsonWriter& out, const Gpu& gpu);

// Quantities within bounds that keep every later sum finite. Throw Error for a value out of bounds.
BytesPerSecond link_bandwidth(const JsonReader& json);  // 1 MB/s to 1 PB/s
Seconds short_time(const JsonReader& json);             // 0 to 1 s
int small_int(const JsonReader& json, int least, int most);
Bytes bytes_between(const JsonReader& json, Bytes least, Bytes most, const std::string& expected);

// Requests that are under way at the drives of a node. Depth and block: queue_depth and block_size of DeepSpeed's asynchronous I/O unless told
// otherwise (docs/config-json, "aio").
struct DriveQueue {
  int depth = 8;
  Bytes block = {1 << 20};    // of a request
  Seconds latency = {80e-6};  // of a request, without its transfer; assumption: a flash read
};

// The short form of a node in a cluster file: counts and bandwidths instead of parts and links. docs/clusters.md says which parts and links
// each field becomes.
struct ShortNode {
  std::string name = {};
  std::string gpu = {};
  int gpus = 8;
  // NVLink
  enum class Nvlink : std::uint8_t { None, Switch, Mesh } nvlink = Nvlink::None;
  BytesPerSecond nvlink_bandwidth = {};  // per GPU and direction
  Seconds nvlink_latency = {};           // GPU to GPU
  bool sharp = false;                    // NodeShape::nvlink_sharp
  struct Pair {                          // GPUs a and b of a mesh, joined by `links` NVLinks
    int a = 0, b = 0, links = 1;
  };
  std::vector<Pair> pairs = {};  // of a mesh; empty: every pair of GPUs
  // PCIe and sockets. Per direction: from each GPU and NIC; from each PCIe switch to its socket; between two sockets (0: not joined); from
  // each GPU to its socket by NVLink-C2C, in place of PCIe (0: PCIe)
  int sockets = 2, switches = 0;  // of the node
  BytesPerSecond pcie_bandwidth = {}, uplink_bandwidth = {}, socket_bandwidth = {}, c2c_bandwidth = {};
  // NICs
  int nics = 0, rails = 0;
  BytesPerSecond nic_bandwidth = {};
  Seconds nic_latency = {};
  bool nics_at_socket = false;
  // host
  int cores = 0;
  Bytes memory = {}, nvme = {};
  BytesPerSecond memory_bandwidth = {}, nvme_bandwidth = {};
  DriveQueue nvme_queue = {};
};
// The bandwidth that the drives of a node reach. By Little's law a queue of `depth` requests moves depth x block bytes in the time of one
// request, latency + block / bandwidth; at most nvme_bandwidth.
BytesPerSecond drive_bandwidth(const ShortNode& quote);
NodeShape build_shape(const ShortNode& quote);  // its parts and links, spelled out

inline constexpr int kMostGpus = 576;  // of a node: the largest NVLink domain
// `own`: the GPUs that the cluster file defines itself. Throw Error.
std::vector<std::string> quote_keys();  // the keys of the short form
NodeShape read_quote(const JsonReader& json, const std::string& name, const std::vector<Gpu>& own);
std::string gpu_name(const JsonReader& json, const std::vector<Gpu>& own);  // the name of a GPU of the catalogue or of `own`

// The words of files for kinds of parts and links; empty for an unknown word.
std::optional<PartKind> part_kind(const std::string& word);
std::optional<LinkKind> link_kind(const std::string& word);
const char* word_of(PartKind kind);
const char* word_of(LinkKind kind);
std::vector<std::string> part_words();  // of the parts of a node
std::vector<std::string> link_words();

}  // namespace foreshard
