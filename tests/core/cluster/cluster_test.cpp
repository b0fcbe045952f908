// The shipped clusters and GPUs against datasheets and published measurements.
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/cluster_file/cluster_settings.h"
#include "core/json/json.h"
#include "core/network/network.h"

namespace foreshard::cluster_test {
namespace {

TEST(Clusters, EveryShippedClusterLoadsAndRoutesEveryPairOfTwoNodes) {
  const std::vector<std::string> expected = {"dgx-a100",  "dgx-a100-40gb", "dgx-b200",           "dgx-h100",    "dgx-h800",
                                             "dgx1-v100", "eth100-a100",   "eth25-a100",         "gb200-nvl72", "gh200",
                                             "hgx-h200",  "pcie-a100-8",   "workstation-rtx4090"};
  EXPECT_EQ(shipped("topologies"), expected);
  for (const std::string& name : expected) {
    const Cluster one = load_cluster(name);
    EXPECT_EQ(one.name, name);
    EXPECT_FALSE(one.source.empty()) << name;
    const Cluster two = load_cluster(name + "-x2");
    const Network network(two);
    ASSERT_EQ(network.devices(), 2 * gpu_count(one)) << name;
    for (int from = 0; from < network.devices(); ++from)
      for (int to = 0; to < network.devices(); ++to)
        if (from != to) {
          ASSERT_GT(network.route({from}, {to}).bandwidth.value, 0) << name;
        }
    for (int gpu = 0; gpu < network.devices(); ++gpu)
      ASSERT_FALSE(network.host_route({gpu}, Endpoint::HostMemory, true).links.empty()) << name;
  }
}

TEST(Clusters, TheHostMemoryOfAGh200IsBehindNvlinkC2c) {
  const Network network(load_cluster("gh200"));
  for (const bool to_device : {true, false})
    EXPECT_EQ(network.host_route({0}, Endpoint::HostMemory, to_device).bandwidth.value, 450e9);
}

// Little's law: requests under way = rate x time of a request. A drive of 7.877 GB/s, 80 us and 64 KiB: one request takes
// 80 us + 65536 / 7.877e9 s = 88.32 us, so depth d gives d x 742.0 MB/s, up to the eleventh.
TEST(Clusters, TheQueueOfADriveSaysItsBandwidth) {
  const auto drive = [](const std::string& depth, const std::string& block) {
    const Cluster cluster = cluster_with("workstation-rtx4090", {{"nvme.queue_depth", depth}, {"nvme.block", block}}, "a test");
    for (const NodeLink& link : cluster.nodes.front().shape.links)
      if (link.kind == LinkKind::NvmeBus) return link.bandwidth.value;
    return 0.0;
  };
  const double peak = 7.877e9, request = 80e-6 + 65536 / peak;
  for (const int depth : {1, 2, 8, 10})
    EXPECT_DOUBLE_EQ(drive(std::to_string(depth), "\"64 KiB\""), depth * 65536 / request) << depth;
  EXPECT_NEAR(drive("1", "\"64 KiB\""), 742.0e6, 0.05e6);
  EXPECT_DOUBLE_EQ(drive("11", "\"64 KiB\""), peak);
  EXPECT_LT(drive("1", "\"1 MiB\""), peak);  // one after the other: the drive waits 80 us between two
  EXPECT_DOUBLE_EQ(drive("8", "\"1 MiB\""), peak);
}

TEST(Clusters, JsonRoundTripIsExact) {
  for (const std::string& name : shipped("topologies")) {
    const Cluster cluster = load_cluster(name + "-x3");
    EXPECT_EQ(parse_cluster(to_json(cluster), "copy"), cluster) << name;
  }
}

TEST(Gpus, EveryCatalogueEntryLoadsNamesItsSourceAndRoundTrips) {
  const std::vector<std::string> names = shipped("topologies/gpus");
  EXPECT_EQ(names.size(), 30u);
  for (const std::string& name : names) {
    const Gpu gpu = load_gpu(name);
    EXPECT_EQ(gpu.name, name);
    EXPECT_FALSE(gpu.source.empty()) << name;
    EXPECT_GT(gpu.power_watts, 0) << name;
    EXPECT_EQ(parse_gpu(to_json(gpu), "copy"), gpu);
  }
}

// Peak = SMs * FLOP per SM and clock * clock. Dense FP16 tensor FLOP per SM and clock: Volta 1024, Ampere 2048, Hopper 4096,
// data-centre Blackwell 8192 (architecture whitepapers; the tuning guides count fused multiply-adds, half of it); with fp32
// accumulation 512 on GeForce Ampere, Ada and Blackwell, 1024 on their professional cards. H20: a quarter of Hopper.
TEST(Gpus, PeaksAreSmsTimesClock) {
  const std::map<std::string, double> per_clock = {
      {"v100-16", 1024},      {"v100-32", 1024}, {"a100-40", 2048},      {"a100-80", 2048},      {"a100-pcie-40", 2048},
      {"a100-pcie-80", 2048}, {"a800-80", 2048}, {"h100-80", 4096},      {"h100-96", 4096},      {"h100-nvl-94", 4096},
      {"h100-pcie-80", 4096}, {"h200", 4096},    {"h200-nvl-141", 4096}, {"gh200-96", 4096},     {"h800-80", 4096},
      {"h20", 1024},          {"b200", 8192},    {"b300", 8192},         {"gb200", 8192},        {"gb300", 8192},
      {"rtx-3090", 512},      {"rtx-4090", 512}, {"rtx-5090", 512},      {"rtx-5060-ti", 512},   {"rtx-a6000", 1024},
      {"a40", 1024},          {"a10", 1024},     {"l40s", 1024},         {"rtx-6000-ada", 1024}, {"rtx-pro-6000", 1024}};
  EXPECT_EQ(per_clock.size(), shipped("topologies/gpus").size());
  for (const auto& [name, flop] : per_clock) {
    const Gpu gpu = load_gpu(name);
    const double derived = gpu.sm_count * flop * gpu.clock_ghz * 1e9;
    EXPECT_NEAR(gpu.fp16.value / derived, 1, 0.004) << name;
  }
}

// Where there is no tensor core behind it, fp32 = cores * 2 * clock: 128 cores per SM of GA102, Ada and RTX Blackwell. Tensor
// cores take TF32 at half of the rate of FP16 and FP8 at twice.
TEST(Gpus, TheRatesOfACardAreInStep) {
  for (const char* name : {"rtx-3090", "rtx-a6000", "a40", "a10", "l40s", "rtx-6000-ada", "rtx-5090"}) {
    const Gpu gpu = load_gpu(name);
    EXPECT_NEAR(gpu.fp32.value / (gpu.sm_count * 128 * 2 * gpu.clock_ghz * 1e9), 1, 0.004) << name;
    EXPECT_NEAR(gpu.fp64.value / (gpu.fp32.value / 64), 1, 0.02) << name;
  }
  for (const std::string& name : shipped("topologies/gpus")) {
    const Gpu gpu = load_gpu(name);
    if (gpu.tf32.value > 0) {
      EXPECT_NEAR(gpu.tf32.value / gpu.fp16.value, 0.5, 0.002) << name;
    }
    if (gpu.fp8.value > 0) {
      EXPECT_NEAR(gpu.fp8.value / gpu.fp16.value, 2, 0.01) << name;
    }
  }
}

// HBM and GDDR bandwidth = bus width / 8 * data rate per pin.
TEST(Gpus, MemoryBandwidthIsBusWidthTimesDataRate) {
  EXPECT_NEAR(load_gpu("a100-40").memory_bandwidth.value, 5120 / 8 * 2.43e9, 1e9);   // 1215 MHz, two transfers
  EXPECT_NEAR(load_gpu("a100-80").memory_bandwidth.value, 5120 / 8 * 3.186e9, 1e9);  // 1593 MHz
  EXPECT_NEAR(load_gpu("h100-80").memory_bandwidth.value, 5120 / 8 * 5.239e9, 5e9);  // 2619 MHz
  EXPECT_NEAR(load_gpu("rtx-4090").memory_bandwidth.value, 384 / 8 * 21e9, 1);
  EXPECT_NEAR(load_gpu("rtx-5060-ti").memory_bandwidth.value, 128 / 8 * 28e9, 1);
  EXPECT_NEAR(load_gpu("rtx-pro-6000").memory_bandwidth.value, 512 / 8 * 28e9, 1);
  EXPECT_NEAR(load_gpu("rtx-3090").memory_bandwidth.value, 384 / 8 * 19.5e9, 1);
  EXPECT_NEAR(load_gpu("rtx-5090").memory_bandwidth.value, 512 / 8 * 28e9, 1);
  EXPECT_NEAR(load_gpu("rtx-a6000").memory_bandwidth.value, 384 / 8 * 16e9, 1);
  EXPECT_NEAR(load_gpu("a40").memory_bandwidth.value, 384 / 8 * 14.5e9, 1);
  EXPECT_NEAR(load_gpu("a10").memory_bandwidth.value, 384 / 8 * 12.5e9, 1);
  EXPECT_NEAR(load_gpu("l40s").memory_bandwidth.value, 384 / 8 * 18e9, 1);
  EXPECT_NEAR(load_gpu("rtx-6000-ada").memory_bandwidth.value, 384 / 8 * 20e9, 1);
  EXPECT_NEAR(load_gpu("v100-16").memory_bandwidth.value, 4096 / 8 * 1.754e9, 3e9);       // 877 MHz, two transfers
  EXPECT_NEAR(load_gpu("a800-80").memory_bandwidth.value, 5120 / 8 * 3.186e9, 1e9);       // 1593 MHz
  EXPECT_NEAR(load_gpu("h800-80").memory_bandwidth.value, 5120 / 8 * 5.239e9, 5e9);       // 2619 MHz
  EXPECT_NEAR(load_gpu("h20").memory_bandwidth.value, 6144 / 8 * 5.239e9, 30e9);          // six stacks; sheet: 4.0 TB/s
  EXPECT_NEAR(load_gpu("gh200-96").memory_bandwidth.value, 6144 / 8 * 5.239e9, 30e9);     // six stacks; sheet: 4 TB/s
  EXPECT_NEAR(load_gpu("h100-nvl-94").memory_bandwidth.value, 6016 / 8 * 5.239e9, 50e9);  // 94 of 96 parts; sheet: 3.9 TB/s
}

TEST(Gpus, AMissingPrecisionFallsBackToTheNextWider) {
  const Gpu v100 = load_gpu("v100-32"), a100 = load_gpu("a100-80");
  EXPECT_EQ(peak(v100, DType::BF16).value, 15.7e12);
  EXPECT_EQ(peak(v100, DType::TF32).value, 15.7e12);
  EXPECT_EQ(peak(v100, DType::F8).value, 125e12);
  EXPECT_EQ(peak(a100, DType::F8).value, 312e12);
  EXPECT_EQ(peak(a100, DType::F64).value, 19.5e12);
  EXPECT_FALSE(v100.flash_attention);
  EXPECT_TRUE(a100.flash_attention);
}

TEST(Gpus, AnUnknownNameSaysWhatIsNear) {
  try {
    load_gpu("h100-8");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "GPU: found 'h100-8', expected a GPU of the catalogue, perhaps 'h100-80'");
  }
}

// Datasheets give both directions together: A100 600 GB/s, H100 and H200 900, H800 400, B200 1800.
TEST(Clusters, NvlinkIsHalfOfTheDatasheetsSum) {
  const auto port = [](const char* name) { return Network(load_cluster(name)).route({0}, {1}).bandwidth.value; };
  EXPECT_EQ(port("dgx-a100"), 600e9 / 2);
  EXPECT_EQ(port("dgx-a100-40gb"), 600e9 / 2);
  EXPECT_EQ(port("dgx-h100"), 900e9 / 2);
  EXPECT_EQ(port("hgx-h200"), 900e9 / 2);
  EXPECT_EQ(port("dgx-h800"), 400e9 / 2);
  EXPECT_EQ(port("dgx-b200"), 1800e9 / 2);
  EXPECT_EQ(port("gb200-nvl72"), 1800e9 / 2);
}

// DGX A100: GPU pairs and NIC pairs below one PCIe switch; 200 Gb/s = 25 GB/s; PCIe 4.0 x16 = 16e9 * 16 * 128/130 / 8.
TEST(Clusters, DgxA100HasFourPcieSwitchesAndEightRails) {
  const Network network(load_cluster("dgx-a100-x2"));
  EXPECT_EQ(gpu_count(network.cluster()), 16);
  EXPECT_EQ(network.rails(), 8);
  for (int gpu = 0; gpu < 8; ++gpu) EXPECT_EQ(network.nic({gpu}), gpu);
  EXPECT_EQ(network.route({2}, {10}).bandwidth.value, 25e9);
  const Route up = network.host_route({3}, Endpoint::HostMemory, false);
  EXPECT_NEAR(up.bandwidth.value, 16e9 * 16 * 128 / 130 / 8, 1e6);
  EXPECT_EQ(network.name(up.links[1]), "node0/pcie1->cpu0");
  EXPECT_EQ(network.host_route({2}, Endpoint::HostMemory, false).links[1], up.links[1]) << "two GPUs share the uplink";
  EXPECT_EQ(network.node_shape(0).host_memory.value, std::int64_t{2} << 40);
  EXPECT_NEAR(network.link(up.links[2]).bandwidth.value, 8 * 25.6e9, 1) << "of one socket: eight channels of DDR4-3200";
  const Route drive = network.host_route({3}, Endpoint::Nvme, true);
  EXPECT_NEAR(network.link(drive.links[0]).bandwidth.value, 4 * 7.877e9, 0.1e9) << "of one socket: four drives";
  EXPECT_NEAR(network.cluster().power_per_gpu_watts, 812.5, 1e-9);  // 6.5 kW / 8
  EXPECT_EQ(network.cluster().price_per_gpu_hour, 0) << "no sourced price, so none";
}

// Four GPUs and a NIC per switch: what leaves the switch shares its uplink, and a NIC is shared by four GPUs.
TEST(Clusters, PcieA100SharesSwitchesAndNics) {
  const Network network(load_cluster("pcie-a100-8-x2"));
  const Route a = network.route({0}, {4}), b = network.route({3}, {7});
  EXPECT_EQ(network.name(a.links[1]), "node0/pcie0->cpu0");
  EXPECT_EQ(a.links[1], b.links[1]);
  EXPECT_EQ(network.host_route({2}, Endpoint::HostMemory, false).links[1], a.links[1]);
  EXPECT_EQ(network.nic({3}), 0);
  EXPECT_EQ(network.nic({4}), 1);
  EXPECT_EQ(network.route({0}, {8}).links[1], network.route({3}, {9}).links[1]) << "the way into the NIC";
  std::vector<DeviceId> all;
  for (int i = 0; i < 16; ++i) all.push_back({i});
  EXPECT_EQ(ring_orders(network, all).size(), 2u) << "one ring per NIC";
}

// Six links of 25 GB/s per GPU: 16 edges of the cube mesh, 24 links in all.
TEST(Clusters, Dgx1IsAHybridCubeMesh) {
  const Cluster cluster = load_cluster("dgx1-v100");
  std::vector<double> out(8);
  int edges = 0;
  for (const NodeLink& link : cluster.nodes[0].shape.links)
    if (link.kind == LinkKind::NvLink) {
      ++edges;
      out[static_cast<std::size_t>(link.from)] += link.bandwidth.value;
      out[static_cast<std::size_t>(link.to)] += link.bandwidth.value;
    }
  EXPECT_EQ(edges, 16);
  for (const double bandwidth : out) EXPECT_DOUBLE_EQ(bandwidth, 150e9);
  const Network network(cluster);
  EXPECT_EQ(network.route({0}, {5}).links.size(), 2u) << "over a GPU between them, not over PCIe";
  EXPECT_EQ(network.route({0}, {5}).bandwidth.value, 25e9) << "both ways (by 1, by 4) have one single link";
  EXPECT_EQ(network.route({0}, {3}).bandwidth.value, 50e9);
}

double bus_bandwidth(const Network& network, int n) {  // of an all-reduce of large messages: 2(n-1)/n S / time
  std::vector<DeviceId> members;
  for (int i = 0; i < n; ++i) members.push_back({i});
  const auto phases = collective_phases(network, {.bytes = {1'000'000'000}}, members);
  std::map<LinkId, int> times;
  for (const LinkId id : phases.at(0).links) ++times[id];
  double seconds = 0;
  for (const auto& [id, count] : times) seconds = std::max(seconds, phases[0].bytes * count / network.link(id).bandwidth.value);
  return 2.0 * (n - 1) / n * 1e9 / seconds;
}

// vTrain's published all-reduce tables (nccl-tests, 1 GiB): V100 with the DGX-1 mesh 22.6, 45.2, 85.8, 134.5 GB/s for 2, 3, 4
// and 8 GPUs; A100 with NVSwitch 229 GB/s for 8. The datasheet rates of the rings found must lie 5 to 35 % above: what is lost
// is protocol, not links.
TEST(Clusters, RingsFindTheLinksThatNcclFinds) {
  const Network v100(load_cluster("dgx1-v100")), a100(load_cluster("dgx-a100"));
  EXPECT_DOUBLE_EQ(bus_bandwidth(v100, 2), 25e9);   // one link
  EXPECT_DOUBLE_EQ(bus_bandwidth(v100, 3), 50e9);   // one ring each way
  EXPECT_DOUBLE_EQ(bus_bandwidth(v100, 4), 100e9);  // two rings each way
  EXPECT_DOUBLE_EQ(bus_bandwidth(v100, 8), 150e9);  // all six links
  EXPECT_DOUBLE_EQ(bus_bandwidth(a100, 8), 300e9);
  const std::map<int, double> measured = {{2, 22.56e9}, {3, 45.16e9}, {4, 85.82e9}, {8, 134.51e9}};
  for (const auto& [n, bandwidth] : measured) {
    EXPECT_GT(bus_bandwidth(v100, n) / bandwidth, 1.05) << n;
    EXPECT_LT(bus_bandwidth(v100, n) / bandwidth, 1.35) << n;
  }
  EXPECT_LT(bus_bandwidth(a100, 8) / 229.35e9, 1.35);
}

TEST(Clusters, Nvl72IsOneNodePerRackWithFourRails) {
  const Network network(load_cluster("gb200-nvl72-x2"));
  EXPECT_EQ(network.rails(), 4);
  for (int gpu = 0; gpu < 72; ++gpu) EXPECT_EQ(network.nic({gpu}), gpu);
  EXPECT_EQ(network.route({0}, {71}).bandwidth.value, 900e9);
  EXPECT_EQ(network.route({0}, {72 + 4}).bandwidth.value, 50e9);
  EXPECT_EQ(network.host_route({1}, Endpoint::HostMemory, true).bandwidth.value, 225e9);
  EXPECT_TRUE(network.host_route({1}, Endpoint::Nvme, true).links.empty());
}

TEST(Clusters, TheQuoteInTheExamplesIsShortAndHasAPrice) {
  const std::string path = std::string(FORESHARD_SOURCE) + "/examples/quote-h100-pcie.json";
  const std::string text = read_file(path);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 25);
  const Cluster cluster = load_cluster(path);
  EXPECT_EQ(cluster.name, "quote-h100-pcie");
  EXPECT_EQ(gpu_count(cluster), 128);
  // 250000 / 8 GPUs / (4 * 8760 h) + 5.5 kW / 8 * 0.15
  EXPECT_NEAR(cluster.price_per_gpu_hour, 250000.0 / 8 / 35040 + 0.6875 * 0.15, 1e-12);
  EXPECT_NEAR(cluster.power_per_gpu_watts, 687.5, 1e-9);
  const Network network(cluster);
  EXPECT_EQ(network.route({0}, {1}).links.size(), 1u) << "bridged";
  EXPECT_EQ(network.route({0}, {2}).bandwidth.value, 63e9) << "not bridged";
  EXPECT_EQ(network.link(network.leaf_trunk(0, 0, false)).bandwidth.value, 8 * 50e9 / 2);
}

// 6.5 kW per node are in the file; null takes them away, so the power of a GPU can be said instead.
TEST(Clusters, NullTakesAPowerOrAPriceAway) {
  const std::vector<std::pair<std::string, std::string>> both = {{"power_per_gpu", "\"700 W\""}};
  EXPECT_THROW(cluster_with("dgx-a100", both, "test"), Error);
  const Cluster one = cluster_with("dgx-a100-x2", {both.front(), {"power_per_node", "null"}}, "test");
  EXPECT_EQ(one.power_per_gpu_watts, 700);
  EXPECT_EQ(node_count(one), 2);
  EXPECT_EQ(cluster_with("dgx-a100", {{"price_per_gpu_hour", "null"}}, "test").price_per_gpu_hour, 0);
}

TEST(Clusters, SettingsOfOneNoun) {
  const auto found = settings_of("cluster", {"model.n_layer=4", "cluster.nodes=2", "cluster.gpu=a=b"});
  EXPECT_EQ(found, (std::vector<std::pair<std::string, std::string>>{{"nodes", "2"}, {"gpu", "a=b"}}));
}

TEST(Clusters, TheReadmeNamesThemAll) {
  const std::string readme = read_file(std::string(FORESHARD_SOURCE) + "/topologies/README.md");
  for (const char* kind : {"topologies", "topologies/gpus"})
    for (const std::string& name : shipped(kind)) EXPECT_NE(readme.find(name), std::string::npos) << name;
}

TEST(Clusters, NamesWithXnAreSoManyNodes) {
  const Cluster cluster = load_cluster("dgx-h100-x16");
  EXPECT_EQ(cluster.name, "dgx-h100-x16");
  EXPECT_EQ(node_count(cluster), 16);
  EXPECT_EQ(gpu_count(cluster), 128);
  EXPECT_EQ(gpu_of(cluster, "h100-80").memory.value, std::int64_t{81559} << 20);
}

TEST(Clusters, GroupsOfNodesMayDiffer) {
  const Cluster cluster = parse_cluster(R"({
    "nodes": [{"shape": "dgx-a100", "count": 2, "name": "old"}, {"shape": "dgx-h100"}],
    "fabric": {"nodes_per_leaf": 4}})",
                                        "mixed.json");
  EXPECT_EQ(cluster.name, "mixed");
  ASSERT_EQ(cluster.gpus.size(), 2u);
  const Network network(cluster);
  EXPECT_EQ(network.gpu({15}).name, "a100-80");
  EXPECT_EQ(network.gpu({16}).name, "h100-80");
  EXPECT_EQ(network.route({16}, {17}).bandwidth.value, 450e9);
  EXPECT_EQ(network.route({0}, {16}).bandwidth.value, 25e9);
  // the leaf is built for its widest NICs: 4 * 50 GB/s
  EXPECT_EQ(network.link(network.leaf_trunk(0, 0, false)).bandwidth.value, 200e9);
}

TEST(Clusters, AGpuOfTheFileWinsOverTheCatalogue) {
  Gpu more = load_gpu("h100-80");
  more.memory = {std::int64_t{160} << 30};
  const Cluster cluster = parse_cluster("{\"shape\": \"dgx-h100\", \"gpus\": [" + to_json(more) + "]}", "what-if.json");
  ASSERT_EQ(cluster.gpus.size(), 1u);
  EXPECT_EQ(cluster.gpus[0], more);
}

// Whoever opens the result elsewhere has no such file.
TEST(Clusters, AnOriginCarriesAFileOfItsOwn) {
  const std::string path = testing::TempDir() + "mine.json";
  for (const std::string text : {R"({"shape": "dgx-h100", "nodes": 2})", R"({"shape": "dgx-h100", "nodes": 2} // at home)"}) {
    write_file(path, text);
    const Cluster mine = load_cluster(path);
    const std::string plain = R"({"cluster": "mine", "settings": ["cluster.fabric.levels=1"]})";
    const std::string origin = with_cluster_file(plain, path);
    Cluster changed = cluster_with(path, {{"fabric.levels", "1"}}, "test");
    std::filesystem::remove(path);
    EXPECT_EQ(cluster_of_origin(origin, "r.result: origin"), changed);
    EXPECT_EQ(cluster_of_origin(R"({"cluster": "dgx-a100-x4"})", "test"), load_cluster("dgx-a100-x4"));
    EXPECT_EQ(with_cluster_file(plain, "dgx-a100-x4"), plain);  // a shipped one is everywhere
    EXPECT_THROW(cluster_of_origin(plain, "r.result: origin"), Error);
    EXPECT_EQ(mine.name, "mine");
  }
}

}  // namespace
}  // namespace foreshard::cluster_test
