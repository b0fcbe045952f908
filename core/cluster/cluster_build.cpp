// Builds the parts and links of a node from its short form.
#include <algorithm>
#include <array>

#include "core/cluster/cluster_json.h"

namespace foreshard {

namespace {
// Latencies of hardware, one way. NCCL's table of step latencies for its LL protocol (src/graph/tuning.cc, hwLat) has
// 0.6 us between GPUs over NVLink, 1.0 us over PCIe (two links) and 2.7 us over a network (four PCIe links, two NICs,
// one switch).
constexpr Seconds kPcieLink{0.5e-6};
constexpr Seconds kSocketLink{0.2e-6};  // assumption: one UPI or xGMI hop
constexpr Seconds kC2cLink{0.3e-6};     // assumption: as an NVLink port
constexpr Seconds kDram{0.1e-6};        // assumption: a load from memory

struct Word {
  const char* text;
  int value;
};
constexpr std::array kPartWords = {Word{"gpu", int(PartKind::Gpu)},         Word{"nvswitch", int(PartKind::NvSwitch)},
                                   Word{"pcie", int(PartKind::PcieSwitch)}, Word{"cpu", int(PartKind::Cpu)},
                                   Word{"dram", int(PartKind::Dram)},       Word{"nvme", int(PartKind::Nvme)},
                                   Word{"nic", int(PartKind::Nic)}};
constexpr std::array kLinkWords = {Word{"nvlink", int(LinkKind::NvLink)}, Word{"pcie", int(LinkKind::Pcie)},
                                   Word{"socket", int(LinkKind::CpuToCpu)}, Word{"dram", int(LinkKind::DramBus)},
                                   Word{"nvme", int(LinkKind::NvmeBus)}};

template <class Words>
int value_of(const Words& words, const std::string& text) {
  for (const Word& word : words)
    if (text == word.text) return word.value;
  return -1;
}
template <class Words>
const char* text_of(const Words& words, int value) {
  for (const Word& word : words)
    if (value == word.value) return word.text;
  return "?";
}
template <class Words>
std::vector<std::string> all(const Words& words) {
  std::vector<std::string> list;
  for (const Word& word : words) list.emplace_back(word.text);
  return list;
}

class ShapeBuilder {
 public:
  explicit ShapeBuilder(const ShortNode& quote) : quote_(quote) {
    shape_ = {.name = quote.name,
              .gpu = quote.gpu,
              .gpus = quote.gpus,
              .nics = quote.nics,
              .nic_bandwidth = quote.nic_bandwidth,
              .nic_latency = quote.nic_latency,
              .cpu_cores = quote.cores,
              .host_memory = quote.memory,
              .host_memory_bandwidth = quote.memory_bandwidth,
              .nvme = quote.nvme,
              .nvlink_sharp = quote.sharp};
  }
  NodeShape build() {
    parts(PartKind::Gpu, "gpu", quote_.gpus);
    nvlink();
    host();
    devices();
    return std::move(shape_);
  }

 private:
  int part(PartKind kind, const std::string& name, int rail = -1) {
    shape_.parts.push_back({kind, name, rail});
    return static_cast<int>(shape_.parts.size()) - 1;
  }
  std::vector<int> parts(PartKind kind, const std::string& name, int count) {
    std::vector<int> made;
    for (int i = 0; i < count; ++i) made.push_back(part(kind, name + std::to_string(i)));
    return made;
  }
  void link(int from, int to, LinkKind kind, BytesPerSecond bandwidth, Seconds latency) {
    shape_.links.push_back({from, to, kind, bandwidth, latency});
  }
  // The position of the i-th of `count` elements that are spread evenly and in order.
  static int spread(const std::vector<int>& over, int i, int count) {
    return over[static_cast<std::size_t>(static_cast<std::int64_t>(i) * static_cast<std::int64_t>(over.size()) / count)];
  }

  void nvlink() {
    if (quote_.nvlink == ShortNode::Nvlink::Switch) {
      const int center = part(PartKind::NvSwitch, "nvswitch");
      for (int i = 0; i < quote_.gpus; ++i)
        link(i, center, LinkKind::NvLink, quote_.nvlink_bandwidth, quote_.nvlink_latency * 0.5);
    }
    if (quote_.nvlink != ShortNode::Nvlink::Mesh) return;
    std::vector<ShortNode::Pair> pairs = quote_.pairs;
    if (pairs.empty())
      for (int a = 0; a < quote_.gpus; ++a)
        for (int b = a + 1; b < quote_.gpus; ++b) pairs.push_back({a, b, 1});
    std::vector<int> used(static_cast<std::size_t>(quote_.gpus));
    for (const ShortNode::Pair& pair : pairs) {
      used[static_cast<std::size_t>(pair.a)] += pair.links;
      used[static_cast<std::size_t>(pair.b)] += pair.links;
    }
    const int most = *std::max_element(used.begin(), used.end());
    for (const ShortNode::Pair& pair : pairs)
      link(pair.a, pair.b, LinkKind::NvLink, quote_.nvlink_bandwidth * (static_cast<double>(pair.links) / most),
           quote_.nvlink_latency);
  }

  void host() {
    cpus_ = parts(PartKind::Cpu, "cpu", quote_.sockets);
    const double share = 1.0 / quote_.sockets;
    for (int i = 0; i < quote_.sockets; ++i) {
      const int cpu = cpus_[static_cast<std::size_t>(i)];
      link(cpu, part(PartKind::Dram, "dram" + std::to_string(i)), LinkKind::DramBus, quote_.memory_bandwidth * share, kDram);
      if (quote_.nvme_bandwidth.value > 0)
        link(cpu, part(PartKind::Nvme, "nvme" + std::to_string(i)), LinkKind::NvmeBus, drive_bandwidth(quote_) * share,
             quote_.nvme_queue.latency);
      if (quote_.socket_bandwidth.value > 0)
        for (int j = 0; j < i; ++j)
          link(cpus_[static_cast<std::size_t>(j)], cpu, LinkKind::CpuToCpu, quote_.socket_bandwidth, kSocketLink);
    }
  }

  void devices() {
    const std::vector<int> switches = parts(PartKind::PcieSwitch, "pcie", quote_.switches);
    for (int i = 0; i < quote_.switches; ++i)
      link(switches[static_cast<std::size_t>(i)], spread(cpus_, i, quote_.switches), LinkKind::Pcie, quote_.uplink_bandwidth,
           kPcieLink);
    for (int i = 0; i < quote_.gpus; ++i) {
      if (quote_.c2c_bandwidth.value > 0)
        link(i, spread(cpus_, i, quote_.gpus), LinkKind::CpuToCpu, quote_.c2c_bandwidth, kC2cLink);
      else
        link(i, spread(switches.empty() ? cpus_ : switches, i, quote_.gpus), LinkKind::Pcie, quote_.pcie_bandwidth, kPcieLink);
    }
    for (int i = 0; i < quote_.nics; ++i)
      link(part(PartKind::Nic, "nic" + std::to_string(i), i % std::max(1, quote_.rails)),
           spread(switches.empty() || quote_.nics_at_socket ? cpus_ : switches, i, quote_.nics), LinkKind::Pcie,
           quote_.pcie_bandwidth, kPcieLink);
  }

  const ShortNode& quote_;
  NodeShape shape_;
  std::vector<int> cpus_;
};
}  // namespace

BytesPerSecond drive_bandwidth(const ShortNode& quote) {
  const double block = static_cast<double>(quote.nvme_queue.block.value), peak = quote.nvme_bandwidth.value;
  return {std::min(peak, quote.nvme_queue.depth * block / (quote.nvme_queue.latency.value + block / peak))};
}

NodeShape build_shape(const ShortNode& quote) { return ShapeBuilder(quote).build(); }

std::optional<PartKind> part_kind(const std::string& word) {
  const int value = value_of(kPartWords, word);
  return value < 0 ? std::nullopt : std::optional(static_cast<PartKind>(value));
}
std::optional<LinkKind> link_kind(const std::string& word) {
  const int value = value_of(kLinkWords, word);
  return value < 0 ? std::nullopt : std::optional(static_cast<LinkKind>(value));
}
const char* word_of(PartKind kind) { return text_of(kPartWords, int(kind)); }
const char* word_of(LinkKind kind) { return text_of(kLinkWords, int(kind)); }
std::vector<std::string> part_words() { return all(kPartWords); }
std::vector<std::string> link_words() { return all(kLinkWords); }

}  // namespace foreshard
