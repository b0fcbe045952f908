// Reading and writing of clusters, shared by the files of core/cluster. Internal.
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

// Quantities with the bounds that keep every later sum finite; out of them: Error.
BytesPerSecond link_bandwidth(const JsonReader& json);  // 1 MB/s to 1 PB/s
Seconds short_time(const JsonReader& json);             // 0 to 1 s
int small_int(const JsonReader& json, int least, int most);
Bytes bytes_between(const JsonReader& json, Bytes least, Bytes most, const std::string& expected);

// A node as a person describes it; docs/clusters.md says what each field becomes.
struct NodeQuote {
  std::string name = {};
  std::string gpu = {};
  int gpus = 8;
  // NVLink
  enum class Nvlink : std::uint8_t { None, Switch, Mesh } nvlink = Nvlink::None;
  BytesPerSecond nvlink_bandwidth = {};  // per GPU and direction
  Seconds nvlink_latency = {};           // GPU to GPU
  bool sharp = false;
  struct Pair {
    int a = 0, b = 0, links = 1;
  };
  std::vector<Pair> pairs = {};  // mesh; empty: all to all
  // PCIe and sockets
  int sockets = 2, switches = 0;
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
};
NodeShape build_shape(const NodeQuote& quote);

inline constexpr int kMostGpus = 576;  // of a node: the largest NVLink domain
std::vector<std::string> quote_keys();
NodeShape read_quote(const JsonReader& json, const std::string& name, const std::vector<Gpu>& own);
std::string gpu_name(const JsonReader& json, const std::vector<Gpu>& own);  // of the catalogue or of `own`

std::optional<PartKind> part_kind(const std::string& word);
std::optional<LinkKind> link_kind(const std::string& word);
const char* word_of(PartKind kind);
const char* word_of(LinkKind kind);
std::vector<std::string> part_words();  // of the parts of a node
std::vector<std::string> link_words();

}  // namespace foreshard
