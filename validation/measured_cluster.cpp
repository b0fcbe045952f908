#include "validation/measured_cluster.h"

#include <algorithm>
#include <optional>

#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "core/network/network.h"
#include "validation/measured_words.h"

namespace foreshard {

namespace {

// Per GPU generation: NVLink per GPU and direction and PCIe x16 per direction (bytes/s), host memory (bytes/s), and the NIC to assume
// when a row names none (Gb/s). From the datasheets of DGX-1, DGX A100, DGX H100 and DGX B200.
struct Generation {
  const char* architecture;
  double nvlink, pcie;
  double network_gbps;
  double host_memory;  // of a node with eight GPUs
};
constexpr Generation kGenerations[] = {{"volta", 150e9, 15.754e9, 100, 136.5e9},
                                       {"ampere", 300e9, 31.508e9, 200, 409.6e9},
                                       {"hopper", 450e9, 63.015e9, 400, 614.4e9},
                                       {"blackwell", 900e9, 63.015e9, 400, 716.8e9},
                                       {"ada", 0, 31.508e9, 100, 409.6e9}};

const Generation& generation(const std::string& architecture) {
  for (const Generation& g : kGenerations)
    if (architecture == g.architecture) return g;
  return kGenerations[1];
}

// Cards whose links differ from those of their generation, per direction. PCIe cards have no NVSwitch; a bridge joins pairs of some:
// GA102 whitepaper (112.5 GB/s both directions together), A100 and H100 datasheets (600). H200 NVL: a bridge of four cards, to each of the
// others a third of 900 (datasheet). A800 and H800 have 400 GB/s to their NVSwitch.
struct Card {
  const char* gpu;
  std::optional<double> nvlink = {};
  double bridge = 0;
  std::optional<double> network_gbps = {};  // NIC of a workstation or a small server, as for Ada
  std::optional<double> pcie = {};          // where the slot is not PCIe x16
  std::optional<double> c2c = {};           // NVLink-C2C to the host instead of PCIe
  std::optional<double> host_memory = {};   // of its node, per GPU
  std::int64_t per_node = 8;                // GPUs of a node when the row does not state it
  std::int64_t domain = 0;                  // GPUs of an NVLink domain that spans several nodes; 0: one node
};
// Links to the host. GB200: a Grace CPU with two GPUs, so half of its 450 GB/s of NVLink-C2C each (GB200 NVL72 datasheet). GH200: one GPU,
// so all of it (GH200 datasheet). Memory of a Grace: half of the 768 GB/s of a Superchip (Grace CPU Superchip datasheet, 960 GB). RTX 5060
// family: PCIe 5.0 x8 (product page).
constexpr Card kCards[] = {{.gpu = "a10", .nvlink = 0, .network_gbps = 100},
                           {.gpu = "a40", .nvlink = 0, .bridge = 56.25e9, .network_gbps = 100},
                           {.gpu = "rtx-3090", .nvlink = 0, .bridge = 56.25e9, .network_gbps = 100},
                           {.gpu = "rtx-a6000", .nvlink = 0, .bridge = 56.25e9, .network_gbps = 100},
                           {.gpu = "a100-pcie-40", .nvlink = 0, .bridge = 300e9},
                           {.gpu = "a100-pcie-80", .nvlink = 0, .bridge = 300e9},
                           {.gpu = "a800-80", .nvlink = 200e9},
                           {.gpu = "h100-pcie-80", .nvlink = 0, .bridge = 300e9},
                           {.gpu = "h100-nvl-94", .nvlink = 0, .bridge = 300e9},
                           {.gpu = "h200-nvl-141", .nvlink = 0, .bridge = 150e9},
                           {.gpu = "h800-80", .nvlink = 200e9},
                           {.gpu = "rtx-5090", .nvlink = 0, .network_gbps = 100},
                           {.gpu = "rtx-5060-ti", .nvlink = 0, .network_gbps = 100, .pcie = 31.508e9},
                           {.gpu = "rtx-pro-6000", .nvlink = 0, .network_gbps = 100},
                           {.gpu = "gb200", .c2c = 225e9, .per_node = 4, .domain = 72},
                           {.gpu = "gb300", .c2c = 225e9, .per_node = 4, .domain = 72},
                           {.gpu = "gh200-96", .c2c = 450e9, .host_memory = 384e9, .per_node = 1}};

Card card_of(const std::string& gpu) {
  for (const Card& card : kCards)
    if (gpu == card.gpu) return card;
  return {};
}

// What NCCL reaches of the 100 Gb/s of an Omni-Path adapter through its verbs, without GPUDirect, over the 94 % of other adapters
// (bigscience-workshop/bigscience 358e3c8 experiments/bandwidth): 55 with V100 (README.md, 16 nodes), 40.6 with A100
// (all_reduce_bench-a100-n4.txt, four nodes, 4 GB: both channels leave a node through one adapter and enter it through another).
double omni_path_share(const std::string& gpu) {
  return (gpu.starts_with("a100") ? 0.406 : 0.55) / link_share(LinkKind::Network);
}

// Half of what a step of a ring takes through AWS's Elastic Fabric Adapter. All-reduces of 1 MiB to 1 GiB over four nodes of P6 (nccl-tests,
// data/kernels/comm.csv, NCCL 2.27) are within 8 % (median) of a ring with steps of 55 us; NCCL's own 4 to 14 us are InfiniBand's. The
// plugin states 35 us for P6 and P5en (H200), 75 us for P5 (H100) and P4 (A100): aws/aws-ofi-nccl 2daf7d3, src/platform-aws.cpp.
double efa_latency(const std::string& gpu) {
  const bool older = gpu.starts_with("h100") || gpu.starts_with("a100");
  return 27e-6 * (older ? 75.0 / 35.0 : 1.0);
}

// A communicator uses only one of a node's adapters, however many ranks it has in the node (same source: 64 ranks sum with 55 of the
// 400 Gb/s). Without pipeline parallelism there is a communicator for each tensor-parallel rank.
std::int64_t omni_path_adapters(const MeasuredRow& row, std::int64_t per_node) {
  const double stages = row.number("pp").value_or(0), tensor = row.number("tp").value_or(0);
  return stages == 1 && tensor >= 1 ? std::min(per_node, static_cast<std::int64_t>(tensor)) : per_node;
}

bool bridged(const MeasuredRow& row, const Card& card) {
  if (card.bridge == 0 || row.mentions("intra_link", "no nvlink") || row.mentions("intra_link", "without")) return false;
  return row.mentions("intra_link", "nvlink") || row.mentions("intra_link", "bridge");
}

// NVLink of a node: GPUs 0 and 1, 2 and 3, ... by a bridge, or all by a switch or a mesh.
void write_nvlink(JsonWriter& json, const MeasuredRow& row, const Card& card, double to_switch, std::int64_t per_node) {
  if (per_node < 2) return;
  if (bridged(row, card)) {
    json.key("nvlink").begin_object().field("kind", "mesh").field("bandwidth", card.bridge).key("pairs").begin_array();
    for (std::int64_t gpu = 0; gpu + 1 < per_node; gpu += 2) json.begin_array().value(gpu).value(gpu + 1).end_array();
    json.end_array().end_object();
  } else if (to_switch > 0 && !row.mentions("intra_link", "pcie")) {
    const bool mesh = row.mentions("intra_link", "mesh") && per_node <= 8;
    json.key("nvlink").begin_object().field("kind", mesh ? "mesh" : "switch").field("bandwidth", to_switch).end_object();
  }
}

// Host memory of the node: in proportion to its GPUs, from that of a node with eight.
double host_memory(const MeasuredRow& row, const Generation& g, const Card& card, std::int64_t per_node) {
  const double gpus = row.number("gpus_per_node").value_or(static_cast<double>(card.per_node));
  return card.host_memory.value_or(g.host_memory / std::clamp(gpus, 1.0, 8.0)) * static_cast<double>(per_node);
}

// GPUs that a job uses in each NVLink domain, when it needs more than one domain: NVIDIA's launchers ask for equal segments of at
// most 18 nodes with four GPUs each (NVIDIA-NeMo/Megatron-Bridge scripts/performance/utils/executors.py).
std::int64_t segment(std::int64_t gpus, const Card& card) {
  const std::int64_t nodes = (gpus + card.per_node - 1) / card.per_node;
  std::int64_t most = std::min(nodes, card.domain / card.per_node);
  while (nodes % most != 0) --most;
  return most * card.per_node;
}

// Whether data moves between GPUs and host memory. Otherwise the node is described without host links, which is simpler.
bool uses_host(const MeasuredRow& row) { return !row.unknown("offload") && !row.text("offload").starts_with("none"); }

}  // namespace

Cluster measured_cluster(const MeasuredRow& row, const std::string& gpu, std::int64_t gpus, std::vector<std::string>& assumed) {
  const std::string architecture = load_gpu(gpu).architecture;
  const Generation& g = generation(architecture);
  const Card card = card_of(gpu);
  std::int64_t per_node = card.per_node;
  if (const auto stated = row.whole("gpus_per_node"))
    per_node = *stated;
  else
    assumed.emplace_back("gpus_per_node");
  // The NVLink domain is what counts as a node: GB200 and GB300 nodes of four hang on one switch for 72 GPUs (GB200 NVL72 datasheet).
  if (card.domain > 0 && per_node == card.per_node) per_node = card.domain;
  if (row.mentions("intra_link", "nvl72")) per_node = 72;
  // With expert parallelism it matters which ranks have NVLink between them; a dense run is bound by other links.
  if (card.domain > 0 && per_node == card.domain && gpus > card.domain && has_experts(row)) per_node = segment(gpus, card);
  per_node = std::clamp<std::int64_t>(per_node, 1, 72);
  gpus = std::max<std::int64_t>(gpus, 1);
  // "1" in rows of machines with several cards is the number of GPUs per process.
  per_node = per_node == 1 && card.per_node > 1 ? gpus : std::min(per_node, gpus);
  if (per_node > 72) per_node = 8;
  double gbps = card.network_gbps.value_or(g.network_gbps);
  if (const auto stated = row.number("inter_link_gbps_per_gpu"))
    gbps = *stated;
  else if (gpus > per_node)
    assumed.emplace_back("inter_link_gbps_per_gpu");
  std::int64_t adapters = per_node;
  if (row.mentions("notes", "omni-path") || row.mentions("notes", "opa node") || row.mentions("notes", "gb/s opa")) {
    adapters = omni_path_adapters(row, per_node);
    gbps *= omni_path_share(gpu);
  }
  JsonWriter json(0);
  json.begin_object().field("source", "the measured row").field("gpu", gpu).field("gpus_per_node", per_node);
  write_nvlink(json, row, card, card.nvlink.value_or(g.nvlink), per_node);
  json.key("pcie").begin_object().field("bandwidth", card.pcie.value_or(g.pcie));
  if (card.c2c && uses_host(row)) json.field("c2c", *card.c2c);
  json.end_object();
  json.field("host_memory_bandwidth", host_memory(row, g, card, per_node));
  json.key("nics").begin_object().field("count", adapters).field("bandwidth", gbps * 1e9 / 8.0);
  if (row.mentions("framework_flags", "fi_provider=efa")) json.field("latency", efa_latency(gpu));
  json.end_object();
  const std::int64_t nodes = (gpus + per_node - 1) / per_node;
  json.field("nodes", nodes);
  json.end_object();
  return parse_cluster(json.text(), row.where());
}

}  // namespace foreshard
