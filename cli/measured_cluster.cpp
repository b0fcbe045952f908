#include "cli/measured_cluster.h"

#include <algorithm>
#include <cctype>

#include "core/json.h"

namespace foreshard {

namespace {

// NVLink per GPU and direction, PCIe x16 per direction, and the NIC that goes with a generation when a row names none:
// datasheets of DGX-1, DGX A100, DGX H100 and DGX B200.
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

struct GpuWord {
  const char* word;  // in lower case
  const char* name;
};
// The first that stands in the text.
constexpr GpuWord kGpuWords[] = {{"gb300", "gb300"},
                                 {"gb200", "gb200"},
                                 {"b300", "b300"},
                                 {"b200", "b200"},
                                 {"h200", "h200"},
                                 {"h100-pcie", "h100-pcie-80"},
                                 {"h100 pcie", "h100-pcie-80"},
                                 {"h100-96", "h100-96"},
                                 {"h100", "h100-80"},
                                 {"a100-pcie-40", "a100-pcie-40"},
                                 {"a100-pcie", "a100-pcie-80"},
                                 {"a100 pcie", "a100-pcie-80"},
                                 {"a100-40", "a100-40"},
                                 {"a100 40", "a100-40"},
                                 {"a100", "a100-80"},
                                 {"v100", "v100-32"},
                                 {"4090", "rtx-4090"},
                                 {"5060 ti", "rtx-5060-ti"},
                                 {"pro 6000", "rtx-pro-6000"}};

}  // namespace

std::optional<std::string> catalogue_gpu(const std::string& text) {
  std::string low = text;
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (low.starts_with("unknown")) return {};
  for (const GpuWord& entry : kGpuWords)
    if (low.find(entry.word) != std::string::npos) return entry.name;
  return {};
}

// One direction of what joins a GPU to its host, where it is not PCIe x16: half of a Grace's 450 GB/s of NVLink-C2C, for it has two
// GPUs (GB200 NVL72 datasheet); PCIe 5.0 x8 (GeForce RTX 5060 family product page).
struct HostLink {
  const char* gpu;
  double bandwidth;
};
constexpr HostLink kHostLinks[] = {{"gb200", 225e9}, {"gb300", 225e9}, {"rtx-5060-ti", 31.508e9}};

// NCCL reaches 55 of the 100 Gb/s of an Omni-Path adapter through its verbs, without GPUDirect (bigscience-workshop/bigscience
// experiments/bandwidth/README.md, 16 nodes, one adapter in use); other adapters the 94 % of the cost model.
constexpr double kOmniPathShare = 0.55 / 0.94;

// ... and uses one of a node's adapters for a communicator, however many ranks it has there (in the same place: 64 ranks sum with 55 of
// the 400 Gb/s). Without a pipeline there is a communicator for each tensor-parallel rank.
std::int64_t omni_path_adapters(const MeasuredRow& row, std::int64_t per_node) {
  const double stages = row.number("pp").value_or(0), tensor = row.number("tp").value_or(0);
  return stages == 1 && tensor >= 1 ? std::min(per_node, static_cast<std::int64_t>(tensor)) : per_node;
}

Cluster measured_cluster(const MeasuredRow& row, const std::string& gpu, std::int64_t gpus, std::vector<std::string>& assumed) {
  const Gpu card = load_gpu(gpu);
  const Generation& g = generation(card.architecture);
  std::int64_t per_node = 8;
  if (!row.unknown("gpus_per_node") && row.number("gpus_per_node"))
    per_node = static_cast<std::int64_t>(*row.number("gpus_per_node"));
  else
    assumed.emplace_back("gpus_per_node");
  if (row.mentions("intra_link", "nvl72")) per_node = 72;  // the NVLink domain is what counts as a node
  per_node = std::clamp<std::int64_t>(per_node, 1, 72);
  if (gpus <= per_node || per_node == 1) per_node = std::max<std::int64_t>(per_node == 1 ? gpus : 1, std::min(per_node, gpus));
  if (per_node > 72) per_node = 8;
  double gbps = g.network_gbps;
  if (!row.unknown("inter_link_gbps_per_gpu") && row.number("inter_link_gbps_per_gpu"))
    gbps = *row.number("inter_link_gbps_per_gpu");
  else if (gpus > per_node)
    assumed.emplace_back("inter_link_gbps_per_gpu");
  std::int64_t adapters = per_node;
  if (row.mentions("notes", "omni-path") || row.mentions("notes", "opa node") || row.mentions("notes", "gb/s opa")) {
    adapters = omni_path_adapters(row, per_node);
    gbps *= kOmniPathShare;
  }
  const bool pcie = g.nvlink == 0 || row.mentions("intra_link", "pcie");
  const bool mesh = row.mentions("intra_link", "mesh") && per_node > 1 && per_node <= 8;
  JsonWriter json(0);
  json.begin_object().field("source", "the measured row").field("gpu", gpu).field("gpus_per_node", per_node);
  if (!pcie && per_node > 1)
    json.key("nvlink").begin_object().field("kind", mesh ? "mesh" : "switch").field("bandwidth", g.nvlink).end_object();
  json.key("pcie").begin_object().field("bandwidth", g.pcie).end_object();
  json.key("nics").begin_object().field("count", adapters).field("bandwidth", gbps * 1e9 / 8.0).end_object();
  const std::int64_t nodes = (gpus + per_node - 1) / per_node;
  json.field("nodes", nodes);
  json.end_object();
  return parse_cluster(json.text(), row.where());
}

HostRates measured_host(const MeasuredRow& row, const std::string& gpu) {
  const Generation& g = generation(load_gpu(gpu).architecture);
  HostRates rates = {.link = {g.pcie}};
  for (const HostLink& link : kHostLinks)
    if (gpu == link.gpu) rates.link = {link.bandwidth};
  const double gpus = row.unknown("gpus_per_node") ? 8 : row.number("gpus_per_node").value_or(8);
  rates.memory = {g.host_memory / std::clamp(gpus, 1.0, 8.0)};
  return rates;
}

}  // namespace foreshard
