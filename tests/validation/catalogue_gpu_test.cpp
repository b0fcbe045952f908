// How people write the names of GPUs, and the links that a row on such a card has.
#include "validation/catalogue_gpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/data_path.h"
#include "core/network/network.h"
#include "tests/strategy/support_alone.h"
#include "validation/measured.h"
#include "validation/measured_cluster.h"

namespace foreshard::catalogue_gpu_test {

TEST(CatalogueGpu, SpellingsGiveTheCardThatIsMeant) {
  const std::map<std::string, std::string> cards = {
      {"L40S", "l40s"},
      {"NVIDIA L40S-48GB", "l40s"},
      {"RTX 3090 24GB", "rtx-3090"},
      {"4x RTX3090", "rtx-3090"},
      {"RTX 5090 32GB", "rtx-5090"},
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"RTX 5060 Ti", "rtx-5060-ti"},
      {"RTX PRO 6000 96GB", "rtx-pro-6000"},
      {"NVIDIA RTX A6000", "rtx-a6000"},
      {"RTX 6000 Ada Generation", "rtx-6000-ada"},
      {"RTX A6000 Ada", "rtx-6000-ada"},
      {"A40 48GB", "a40"},
      {"A10", "a10"},
      {"A100", "a100-80"},
      {"A100-80GB (SXM, 8 per node)", "a100-80"},
      {"A100 (memory size not in repo; paper: 80GB)", "a100-80"},
      {"A100-40GB", "a100-40"},
      {"NVIDIA A100-SXM4-40GB", "a100-40"},
      {"A100 40", "a100-40"},
      {"A100 (40 GB)", "a100-40"},
      {"DGX A100 640GB", "a100-80"},
      {"A100-40GB (PCIe)", "a100-pcie-40"},
      {"A100-PCIE-40GB", "a100-pcie-40"},
      {"A100-PCIe-80GB", "a100-pcie-80"},
      {"A100 PCIe", "a100-pcie-80"},
      {"A100-40GB SXM4 (PCIe 4.0 host)", "a100-40"},
      {"A800-80GB", "a800-80"},
      {"H100", "h100-80"},
      {"H100 80GB HBM3 (NVLink)", "h100-80"},
      {"H100-96GB (SXM HBM2e 2.4TB/s 500W)", "h100-96"},
      {"H100 NVL", "h100-nvl-94"},
      {"H100-94GB", "h100-nvl-94"},
      {"NVIDIA H200-NVL-141GB", "h200-nvl-141"},
      {"NVIDIA H200-SXM5-141GB", "h200"},
      {"H100-80GB (PCIe)", "h100-pcie-80"},
      {"H800-80GB", "h800-80"},
      {"H20", "h20"},
      {"H20-96GB", "h20"},
      {"H200", "h200"},
      {"GH200", "gh200-96"},
      {"NVIDIA GH200 480GB", "gh200-96"},
      {"B200", "b200"},
      {"GB200", "gb200"},
      {"B300", "b300"},
      {"GB300", "gb300"},
      {"V100-16GB", "v100-16"},
      {"Tesla V100-SXM2-16GB", "v100-16"},
      {"V100-32GB (DGX-2)", "v100-32"},
      {"V100-32GB (DGX-2, 16 GPUs)", "v100-32"},
      {"V100", "v100-32"},
  };
  for (const auto& [text, card] : cards) EXPECT_EQ(catalogue_gpu(text).value_or("none"), card) << text;
}

TEST(CatalogueGpu, EveryNameOfTheCatalogueMeansItself) {
  for (const std::string& name : shipped("topologies/gpus")) EXPECT_EQ(catalogue_gpu(name).value_or("none"), name);
}

TEST(CatalogueGpu, CardsThatOnlyLookAlikeAreUnknown) {
  for (const char* text : {"unknown (A100-class)", "", "A10G", "NVIDIA A10G (g5.48xlarge)", "A1000", "RTX A4000", "L40",
                           "RTX 3090 Ti", "RTX 5090 Laptop", "RTX 5090D", "A800 40GB Active", "H800 PCIe", "GH200-144GB",
                           "H20 141GB", "Quadro RTX 6000", "TPU v4", "GA102"})
    EXPECT_EQ(catalogue_gpu(text).value_or("none"), "none") << text;
}

static Network network_of(const char* card, const char* gpus_per_node, const char* intra_link, std::int64_t gpus,
                          const char* offload = "none") {
  MeasuredRow row;
  row.cells = {{"gpus_per_node", gpus_per_node}, {"intra_link", intra_link}, {"offload", offload}};
  std::vector<std::string> assumed;
  return Network(measured_cluster(row, card, gpus, assumed));
}

static double rate(const Network& network, int from, int to) { return network.route({from}, {to}).bandwidth.value; }

// PCIe x16 in one direction: 16 or 32 GT/s * 16 lanes * 128/130 / 8 bits.
static constexpr double kPcie4 = 31.508e9, kPcie5 = 63.015e9;

TEST(MeasuredCluster, CardsForSlotsHaveNoNvlink) {
  for (const char* card : {"rtx-3090", "rtx-a6000", "a40", "a10", "l40s", "rtx-6000-ada", "rtx-4090", "a100-pcie-40"})
    EXPECT_EQ(rate(network_of(card, "8", "unknown", 8), 0, 1), kPcie4) << card;
  for (const char* card : {"rtx-5090", "rtx-pro-6000", "h100-nvl-94", "h100-pcie-80"})
    EXPECT_EQ(rate(network_of(card, "8", "unknown", 8), 0, 1), kPcie5) << card;
  for (const NodeLink& link : network_of("rtx-3090", "8", "unknown", 8).cluster().nodes[0].shape.links)
    EXPECT_NE(link.kind, LinkKind::NvLink);
}

// GA102: 112.5 GB/s both directions together; H100 NVL: 600.
TEST(MeasuredCluster, ABridgeJoinsTwoCards) {
  const Network four = network_of("rtx-3090", "4", "PCIe 4.0, NVLink bridges", 4);
  EXPECT_EQ(rate(four, 0, 1), 112.5e9 / 2);
  EXPECT_EQ(rate(four, 2, 3), 112.5e9 / 2);
  EXPECT_EQ(rate(four, 1, 2), kPcie4);
  EXPECT_EQ(rate(network_of("h100-nvl-94", "2", "NVLink", 2), 0, 1), 600e9 / 2);
  EXPECT_EQ(rate(network_of("h200-nvl-141", "8", "4-way NVIDIA NVLINK bridge", 8), 0, 1), 900e9 / 2 / 3);
  EXPECT_EQ(rate(network_of("rtx-3090", "2", "PCIe, no NVLink bridge", 2), 0, 1), kPcie4);
  EXPECT_EQ(rate(network_of("rtx-5090", "8", "NVLink", 8), 0, 1), kPcie5) << "it has no connector for one";
}

// Both directions together: A100 600 GB/s, A800 and H800 400, H100 and H20 900.
TEST(MeasuredCluster, ModulesHaveTheNvlinkOfTheirDatasheet) {
  EXPECT_EQ(rate(network_of("a100-80", "8", "unknown", 8), 0, 7), 600e9 / 2);
  EXPECT_EQ(rate(network_of("a800-80", "8", "unknown", 8), 0, 7), 400e9 / 2);
  EXPECT_EQ(rate(network_of("h800-80", "8", "NVLink", 8), 0, 7), 400e9 / 2);
  EXPECT_EQ(rate(network_of("h20", "8", "unknown", 8), 0, 7), 900e9 / 2);
}

// One GPU and one 400 Gb/s NIC per node, and all of NVLink-C2C (450 GB/s each way) to a Grace with 384 GB/s.
TEST(MeasuredCluster, AGraceHopperIsANodeOfItsOwn) {
  for (const char* per_node : {"unknown", "1"}) {
    const Network network = network_of("gh200-96", per_node, "unknown", 16);
    EXPECT_EQ(node_count(network.cluster()), 16) << per_node;
    EXPECT_EQ(rate(network, 0, 1), 50e9) << per_node;
  }
  EXPECT_EQ(node_count(network_of("gh200-96", "4", "NVLink mesh", 2).cluster()), 1);
  const auto host_link = [](const char* card) {
    const Network network = network_of(card, "1", "unknown", 1, "optimizer");
    for (const NodeLink& link : network.cluster().nodes[0].shape.links)
      if (link.from == 0 && link.kind == LinkKind::CpuToCpu) return link.bandwidth.value;
    return rate(network_of(card, "2", "PCIe", 2), 0, 1);
  };
  EXPECT_EQ(network_of("gh200-96", "1", "unknown", 1).cluster().nodes[0].shape.host_memory_bandwidth.value, 384e9);
  EXPECT_EQ(host_link("gh200-96"), 450e9);
  EXPECT_EQ(host_link("gb200"), 225e9);
  EXPECT_EQ(host_link("rtx-3090"), kPcie4);
  EXPECT_EQ(host_link("rtx-5060-ti"), kPcie4);  // eight lanes of PCIe 5.0
}

// A step over AWS's adapters takes 55 us in instances with B200 (CollectiveCost.StepsOverElasticFabricAdapters), 75 / 35 of that, as their
// plugin states, with A100 and H100; only the environment of the run says that there are such adapters.
TEST(MeasuredCluster, ElasticFabricAdaptersHaveALatency) {
  const auto latency = [](const char* gpu, const char* flags, const char* notes) {
    MeasuredRow row;
    row.cells = {{"gpus_per_node", "8"}, {"framework_flags", flags}, {"notes", notes}};
    std::vector<std::string> assumed;
    return Network(measured_cluster(row, gpu, 16, assumed)).route({0}, {8}).latency.value;
  };
  EXPECT_NEAR(latency("b200", "FI_PROVIDER=efa", ""), 55e-6, 2e-6);
  EXPECT_NEAR(latency("h200", "FI_PROVIDER=efa", ""), 55e-6, 2e-6);
  EXPECT_NEAR(latency("h100-80", "FI_PROVIDER=efa", ""), 117e-6, 2e-6);
  EXPECT_NEAR(latency("a100-80", "FI_PROVIDER=efa", ""), 117e-6, 2e-6);
  EXPECT_LT(latency("h100-80", "", "FI_PROVIDER=efa"), 5e-6);
}

// nanotron's jobs measured all-reduces of 1 GiB over all their GPUs. The link of a row is the one with which a ring, or on more than four
// nodes a double tree, takes as long as the median of the jobs on as many GPUs, but at most the 400 Gb/s that the machine has for each
// GPU: trees over two nodes are faster.
TEST(MeasuredCluster, LinksOfNanotronGiveTheMedianAllReduceOfTheirJobs) {
  struct Jobs {
    std::vector<double> reached = {};  // bytes per second on the bus
    std::optional<double> link = {};
    MeasuredRow row = {};
  };
  std::map<int, Jobs> of_gpus;
  for (const MeasuredRow& row : load_measured(std::string(FORESHARD_SOURCE) + "/data/measured/nanotron_sweep.csv")) {
    const std::string& notes = row.text("notes");
    const std::size_t at = notes.find("reached ");
    if (at == std::string::npos || !row.number("inter_link_gbps_per_gpu") || row.text("measured_quantity") != "tflops_per_gpu")
      continue;
    Jobs& jobs = of_gpus[static_cast<int>(*row.number("num_gpus"))];
    jobs.reached.push_back(std::stod(notes.substr(at + 8)) * 1e9);
    EXPECT_EQ(jobs.link.value_or(*row.number("inter_link_gbps_per_gpu")), *row.number("inter_link_gbps_per_gpu"))
        << row.where();
    jobs.link = row.number("inter_link_gbps_per_gpu"), jobs.row = row;
  }
  EXPECT_EQ(of_gpus.size(), 6U);  // 2 to 64 nodes
  for (auto& [gpus, jobs] : of_gpus) {
    std::ranges::sort(jobs.reached);
    const std::size_t middle = jobs.reached.size() / 2;
    const double median =
        jobs.reached.size() % 2 == 1 ? jobs.reached[middle] : (jobs.reached[middle - 1] + jobs.reached[middle]) / 2;
    std::vector<std::string> assumed;
    std::vector<DeviceId> members;
    for (int i = 0; i < gpus; ++i) members.push_back({i});
    const Network network(measured_cluster(jobs.row, "h100-80", gpus, assumed));
    double time = alone(network, {.bytes = {std::int64_t{1} << 30}}, members);
    if (network.nodes() > 4)
      time = std::min(
          time, alone(network, {.algorithm = Algorithm::DoubleTree, .bytes = {std::int64_t{1} << 30}, .servers = 8}, members));
    const double bus = 2.0 * (gpus - 1) / gpus * static_cast<double>(std::int64_t{1} << 30) / time;
    if (*jobs.link < 400)
      EXPECT_NEAR(bus / median, 1, 0.01) << gpus;
    else
      EXPECT_LT(bus / median, 1.01) << gpus;
  }
}

}  // namespace foreshard::catalogue_gpu_test
