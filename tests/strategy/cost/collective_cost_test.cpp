// Communication cost against its closed form and against nccl-tests runs of data/kernels/comm.csv.
#include "strategy/cost/collective_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/communication_path.h"
#include "strategy/kernels/machine_constants.h"
#include "tests/strategy/support_alone.h"

namespace foreshard::collective_cost_test {
namespace {

// Ring all-reduce of 1 GiB over 8 A100: NCCL's Simple protocol, 14 steps of 3.4 us after 8.4 us and the launch; then
// 2 * 7/8 GiB and a last slice of 24 * 512 KiB at 0.8065 of 300 GB/s, and an eighth at 576 GB/s without the link.
TEST(CollectiveCost, ClosedFormOfALargeRing) {
  const Network network(load_cluster("dgx-a100"));
  const Gpu& gpu = network.gpu({0});
  const Collective what = {.bytes = {std::int64_t{1} << 30}};
  const Cost cost = collective_cost(gpu, what, path_of(network, what, first(8)));
  EXPECT_EQ(cost.busy, to_nanoseconds(gpu.launch_overhead + Seconds{8.4e-6 + 14 * 3.4e-6}));
  const double sent = (1.75 * 1073741824 + 24 * 524288) / (0.8065 * 300e9), own = 1073741824 / 8.0 / 576e9;
  EXPECT_NEAR(alone(network, what, first(8)), to_seconds(cost.busy).value + sent + own, 1e-12);
  EXPECT_DOUBLE_EQ(cost.sm_share, 24.0 / 108);
}

TEST(CollectiveCost, OneMemberCostsNothing) { EXPECT_EQ(collective_cost(load_gpu("a100-80"), {}, {.members = 1}), Cost{}); }

// More bytes never take less time, for any size and group: the cheapest protocol is the lower envelope of straight lines.
TEST(CollectiveCost, MonotoneInBytes) {
  for (const char* cluster : {"dgx-a100-x2", "dgx-h100-x4", "pcie-a100-8", "dgx1-v100"}) {
    const Network network(load_cluster(cluster));
    for (const int members : {2, 8}) {
      double before = 0;
      for (std::int64_t bytes = 1024; bytes <= (std::int64_t{1} << 34); bytes *= 2) {
        const double time = alone(network, {.bytes = {bytes}}, first(members));
        EXPECT_GE(time, before) << cluster << ' ' << members << ' ' << bytes;
        before = time;
      }
    }
  }
}

// Small messages take the protocol with little latency, large ones that with little overhead on the wire.
TEST(CollectiveCost, ProtocolFollowsSize) {
  const Network network(load_cluster("dgx-a100"));
  const auto factor = [&](std::int64_t bytes) {
    const Collective what = {.bytes = {bytes}};
    return collective_cost(network.gpu({0}), what, path_of(network, what, first(8))).wire_factor;
  };
  EXPECT_GT(factor(16 * 1024), 2.0);                                           // LL: a flag per datum
  const double own = 300.0 / 576 / 14;                                         // the rank's own part, of the 14 that it sends
  EXPECT_NEAR(factor(4 << 20), (1 / 0.8065 + own) / kLl128Efficiency, 1e-12);  // LL128
  EXPECT_NEAR(factor(std::int64_t{1} << 34), 1 / 0.8065 + own, 1e-3);          // Simple
}

struct Measured {
  const char* cluster;
  int ranks;
  CollectiveKind kind;
  Algorithm algorithm;
  double bytes, microseconds;
};
constexpr CollectiveKind kReduce = CollectiveKind::AllReduce;
// A100: vTrain's tables and the ml-engineering book; H200, B200: the book (NVLS off: ring); V100: vTrain.
const std::vector<Measured> kMeasured = {{"dgx-a100", 2, kReduce, Algorithm::Ring, 33554432, 230.0},
                                         {"dgx-a100", 2, kReduce, Algorithm::Ring, 1073741824, 5442.8},
                                         {"dgx-a100", 4, kReduce, Algorithm::Ring, 33554432, 284.2},
                                         {"dgx-a100", 4, kReduce, Algorithm::Ring, 1073741824, 7259.4},
                                         {"dgx-a100", 8, kReduce, Algorithm::Ring, 8388608, 134.3},
                                         {"dgx-a100", 8, kReduce, Algorithm::Ring, 33554432, 358.1},
                                         {"dgx-a100", 8, kReduce, Algorithm::Ring, 50331648, 439.4},
                                         {"dgx-a100", 8, kReduce, Algorithm::Ring, 134217728, 1162.0},
                                         {"dgx-a100", 8, kReduce, Algorithm::Ring, 1073741824, 8193.0},
                                         {"dgx-a100", 8, kReduce, Algorithm::Ring, 17179869184, 127997},
                                         {"hgx-h200", 8, kReduce, Algorithm::Ring, 8589934592, 41117.0},
                                         {"hgx-h200", 8, kReduce, Algorithm::NvlinkSharp, 8589934592, 31774.2},
                                         {"hgx-h200", 8, kReduce, Algorithm::NvlinkSharp, 67108864, 338.92},
                                         {"hgx-h200", 8, CollectiveKind::AllGather, Algorithm::Ring, 17179869184, 41594.9},
                                         {"dgx-b200", 8, kReduce, Algorithm::Ring, 8589934592, 22035.2},
                                         {"dgx-b200", 8, kReduce, Algorithm::NvlinkSharp, 8589934592, 17938.4},
                                         {"dgx-b200-x4", 32, kReduce, Algorithm::Ring, 17179869184, 87181.76},
                                         {"dgx-b200-x4", 32, kReduce, Algorithm::Ring, 268435456, 2270.26},
                                         {"dgx1-v100", 8, kReduce, Algorithm::Ring, 33554432, 479.3},
                                         {"dgx1-v100", 8, kReduce, Algorithm::Ring, 1073741824, 13969.0}};

TEST(CollectiveCost, MeasuredCollectives) {
  std::vector<double> errors;
  for (const Measured& row : kMeasured) {
    const Network network(load_cluster(row.cluster));
    const Collective what = {.kind = row.kind, .algorithm = row.algorithm, .bytes = {std::llround(row.bytes)}};
    const double time = alone(network, what, first(row.ranks)) * 1e6;
    std::printf("  %-12s %2d ranks %8.1f MB  %9.1f us, measured %9.1f  %+5.1f %%\n", row.cluster, row.ranks, row.bytes * 1e-6,
                time, row.microseconds, (time / row.microseconds - 1) * 100);
    errors.push_back(std::abs(time / row.microseconds - 1));
    EXPECT_LT(errors.back(), 0.30);
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.06);
}

// Rings of two, four and eight ranks by nccl-tests (NVIDIA AIConfigurator's database, NCCL 2.27, 2 bytes an element, out of place). The two
// GPUs of a pair send half of what passes through them, and copy or add the other half: 0.7 of the bandwidth that eight have.
TEST(CollectiveCost, OwnPartsTakeTimeInSmallRings) {
  constexpr auto kGather = CollectiveKind::AllGather, kScatter = CollectiveKind::ReduceScatter;
  constexpr double k64 = 67108864, k512 = 536870912;
  const std::vector<Measured> rows = {
      {"dgx-a100", 2, kGather, Algorithm::Ring, k64, 266.30},  {"dgx-a100", 2, kGather, Algorithm::Ring, k512, 1789.80},
      {"dgx-a100", 4, kGather, Algorithm::Ring, k64, 325.40},  {"dgx-a100", 4, kGather, Algorithm::Ring, k512, 2102.00},
      {"dgx-a100", 8, kGather, Algorithm::Ring, k64, 351.60},  {"dgx-a100", 8, kGather, Algorithm::Ring, k512, 2288.00},
      {"dgx-a100", 2, kScatter, Algorithm::Ring, k64, 230.30}, {"dgx-a100", 2, kScatter, Algorithm::Ring, k512, 1611.80},
      {"dgx-a100", 4, kScatter, Algorithm::Ring, k64, 303.30}, {"dgx-a100", 4, kScatter, Algorithm::Ring, k512, 1982.30},
      {"dgx-a100", 8, kScatter, Algorithm::Ring, k64, 327.20}, {"dgx-a100", 8, kScatter, Algorithm::Ring, k512, 2207.10},
      {"dgx-a100", 2, kReduce, Algorithm::Ring, k64, 391.50},  {"dgx-a100", 2, kReduce, Algorithm::Ring, k512, 2781.10},
      {"dgx-a100", 4, kReduce, Algorithm::Ring, k64, 544.30},  {"dgx-a100", 4, kReduce, Algorithm::Ring, k512, 3716.30},
      {"dgx-a100", 8, kReduce, Algorithm::Ring, k64, 595.30},  {"dgx-a100", 8, kReduce, Algorithm::Ring, k512, 4225.90},
      {"dgx-h100", 2, kGather, Algorithm::Ring, k64, 159.25},  {"dgx-h100", 2, kGather, Algorithm::Ring, k512, 1038.56},
      {"dgx-h100", 4, kGather, Algorithm::Ring, k64, 195.13},  {"dgx-h100", 4, kGather, Algorithm::Ring, k512, 1267.46},
      {"dgx-h100", 8, kGather, Algorithm::Ring, k64, 208.14},  {"dgx-h100", 8, kGather, Algorithm::Ring, k512, 1401.50},
      {"dgx-h100", 2, kScatter, Algorithm::Ring, k64, 169.09}, {"dgx-h100", 2, kScatter, Algorithm::Ring, k512, 1077.90},
      {"dgx-h100", 4, kScatter, Algorithm::Ring, k64, 194.62}, {"dgx-h100", 4, kScatter, Algorithm::Ring, k512, 1299.82},
      {"dgx-h100", 8, kScatter, Algorithm::Ring, k64, 200.75}, {"dgx-h100", 8, kScatter, Algorithm::Ring, k512, 1399.36},
      {"dgx-h100", 2, kReduce, Algorithm::Ring, k64, 254.57},  {"dgx-h100", 2, kReduce, Algorithm::Ring, k512, 1686.44},
      {"dgx-h100", 4, kReduce, Algorithm::Ring, k64, 330.44},  {"dgx-h100", 4, kReduce, Algorithm::Ring, k512, 2299.71},
      {"dgx-b200", 2, kGather, Algorithm::Ring, k64, 94.96},   {"dgx-b200", 2, kGather, Algorithm::Ring, k512, 612.30},
      {"dgx-b200", 4, kGather, Algorithm::Ring, k64, 108.05},  {"dgx-b200", 4, kGather, Algorithm::Ring, k512, 710.64},
      {"dgx-b200", 8, kGather, Algorithm::Ring, k64, 137.52},  {"dgx-b200", 8, kGather, Algorithm::Ring, k512, 761.42},
      {"dgx-b200", 2, kScatter, Algorithm::Ring, k64, 99.02},  {"dgx-b200", 2, kScatter, Algorithm::Ring, k512, 651.03},
      {"dgx-b200", 4, kScatter, Algorithm::Ring, k64, 107.51}, {"dgx-b200", 4, kScatter, Algorithm::Ring, k512, 728.81},
      {"dgx-b200", 8, kScatter, Algorithm::Ring, k64, 136.24}, {"dgx-b200", 8, kScatter, Algorithm::Ring, k512, 766.45},
      {"dgx-b200", 2, kReduce, Algorithm::Ring, k64, 146.71},  {"dgx-b200", 2, kReduce, Algorithm::Ring, k512, 1005.26},
      {"dgx-b200", 4, kReduce, Algorithm::Ring, k64, 181.81},  {"dgx-b200", 4, kReduce, Algorithm::Ring, k512, 1270.83}};
  for (const Measured& row : rows) {
    const Network network(load_cluster(row.cluster));
    const Collective what = {.kind = row.kind, .algorithm = row.algorithm, .bytes = {std::llround(row.bytes)}};
    EXPECT_NEAR(alone(network, what, first(row.ranks)) * 1e6 / row.microseconds, 1, row.bytes > k64 ? 0.09 : 0.16)
        << row.cluster << ' ' << row.ranks << ' ' << static_cast<int>(row.kind) << ' ' << row.bytes;
  }
}

// AWS's Elastic Fabric Adapter: four P6 nodes of eight B200, 8 x 400 Gb/s each, NIC latencies of 27 us.
TEST(CollectiveCost, StepsOverElasticFabricAdapters) {
  Cluster cluster = load_cluster("dgx-b200-x4");
  for (NodeGroup& group : cluster.nodes) group.shape.nic_latency = {27e-6};
  const Network network(cluster);
  std::vector<double> errors;
  for (const auto& [mebibytes, microseconds] : std::map<std::int64_t, double>{{1, 378.33},
                                                                              {2, 391.45},
                                                                              {4, 429.97},
                                                                              {8, 462.78},
                                                                              {16, 504.51},
                                                                              {32, 712.93},
                                                                              {64, 829.55},
                                                                              {128, 1313.77},
                                                                              {256, 2270.26},
                                                                              {512, 3181.97},
                                                                              {1024, 5747.05}})
    errors.push_back(std::abs(alone(network, {.bytes = {mebibytes << 20}}, first(32)) * 1e6 / microseconds - 1));
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.10);
  EXPECT_LT(errors.back(), 0.20);
}

// The same, where the plugin chooses trees (aws/aws-ofi-nccl 2daf7d3, src/tuner/nccl_ofi_regions.cpp: Tree and LL128 to some 28 MiB on 32
// ranks): a hop of a tree takes 88 us.
TEST(CollectiveCost, HopsOfTreesOverElasticFabricAdapters) {
  Cluster cluster = load_cluster("dgx-b200-x4");
  for (NodeGroup& group : cluster.nodes) group.shape.nic_latency = {27e-6};
  const Network network(cluster);
  for (const auto& [mebibytes, microseconds] :
       std::map<std::int64_t, double>{{1, 378.33}, {2, 391.45}, {4, 429.97}, {8, 462.78}, {16, 504.51}}) {
    const Collective sum = {.algorithm = Algorithm::DoubleTree, .bytes = {mebibytes << 20}, .servers = 8};
    EXPECT_NEAR(alone(network, sum, first(32)) * 1e6 / microseconds, 1, 0.11) << mebibytes;
  }
}

// NCCL's tuning model of trees (NVIDIA/nccl 5067397, src/graph/tuning.cc): 2 (ranks of a node - 1) steps inside nodes, 2 log2 (nodes) over
// the network, at 0.92 of a ring's rate. 64 nodes of eight.
TEST(CollectiveCost, TreesTakeFewerStepsThanRings) {
  const Network network(load_cluster("dgx-h100-x64"));
  const auto of = [&](Algorithm algorithm, std::int64_t bytes) {
    return collective_cost(network.gpu({0}), {.algorithm = algorithm, .bytes = {bytes}, .servers = 8},
                           path_of(network, {.algorithm = algorithm, .bytes = {bytes}, .servers = 8}, first(512)));
  };
  const double launch = network.gpu({0}).launch_overhead.value;
  EXPECT_NEAR(to_seconds(of(Algorithm::DoubleTree, 1024).busy).value - launch, (6.8 + 14 * 0.6 + 12 * 5.0) * 1e-6, 2e-9);  // LL
  EXPECT_NEAR(to_seconds(of(Algorithm::DoubleTree, 64 << 20).busy).value - launch, (14 + 14 * 1.25 + 12 * 8.5) * 1e-6,
              2e-9);  // LL128
  EXPECT_NEAR(to_seconds(of(Algorithm::DoubleTree, std::int64_t{16} << 30).busy).value - launch,
              (8.4 + 14 * 4 + 12 * 14) * 1e-6, 2e-9);  // Simple
  EXPECT_NEAR(to_seconds(of(Algorithm::Ring, 1024).busy).value - launch,
              (6.6 + (1022 - 126) * 0.6) * 1e-6 + 126 * path_of(network, {.bytes = {1024}}, first(512)).step_latency.value,
              2e-9);
  const double ring = of(Algorithm::Ring, std::int64_t{16} << 30).wire_factor;
  EXPECT_NEAR(of(Algorithm::DoubleTree, std::int64_t{16} << 30).wire_factor / ring, 1 / 0.92, 0.01);
  EXPECT_LT(alone(network, {.algorithm = Algorithm::DoubleTree, .bytes = {25 << 20}, .servers = 8}, first(512)),
            0.5 * alone(network, {.bytes = {25 << 20}}, first(512)));
}

// All-to-alls inside a node by nccl-tests: NVIDIA AIConfigurator's database, 2 bytes an element, out of place. Ranks copy their own part
// beside the others, so that fewer bytes a second cross the links than in a ring. By the kernels of DeepEP and HybridEP as many as published.
TEST(CollectiveCost, AllToAllsAreSlowerThanRings) {
  const std::vector<Measured> rows = {{"dgx-a100", 8, CollectiveKind::AllToAll, Algorithm::Ring, 268435456, 1197.9},
                                      {"dgx-a100", 8, CollectiveKind::AllToAll, Algorithm::Ring, 536870912, 2313.5},
                                      {"dgx-h100", 8, CollectiveKind::AllToAll, Algorithm::Ring, 268435456, 763.91},
                                      {"dgx-h100", 8, CollectiveKind::AllToAll, Algorithm::Ring, 536870912, 1490.42},
                                      {"dgx-b200", 8, CollectiveKind::AllToAll, Algorithm::Ring, 268435456, 437.69},
                                      {"dgx-b200", 8, CollectiveKind::AllToAll, Algorithm::Ring, 536870912, 834.17}};
  for (const Measured& row : rows) {
    const Network network(load_cluster(row.cluster));
    const Collective what = {.kind = row.kind, .algorithm = row.algorithm, .bytes = {std::llround(row.bytes)}};
    EXPECT_NEAR(alone(network, what, first(row.ranks)) * 1e6 / row.microseconds, 1, 0.07) << row.cluster << ' ' << row.bytes;
    const CommunicationPath path = path_of(network, what, first(row.ranks));
    const double direct = collective_cost(network.gpu({0}), what, path, RowKernels::HybridEp).wire_factor;
    EXPECT_NEAR(direct, 1 / machine_constants(network.gpu({0})).nvlink_ring, 1e-12) << row.cluster;
  }
}

// Of 128 MiB on 32 ranks over four nodes NCCL's last slice of 4 MiB follows the 96 MiB that leave a node; DeepEP's chunks of tokens are small.
TEST(CollectiveCost, OnlyNcclSendsASliceLast) {
  const Network network(load_cluster("dgx-h100-x4"));
  const Collective what = {.kind = CollectiveKind::AllToAll, .bytes = {128 << 20}};
  const CommunicationPath path = path_of(network, what, first(32));
  const auto factor = [&](RowKernels kernels) { return collective_cost(network.gpu({0}), what, path, kernels).wire_factor; };
  EXPECT_NEAR(factor(RowKernels::Nccl) / factor(RowKernels::DeepEp), 1 + 4.0 / 96, 1e-9);
  EXPECT_EQ(factor(RowKernels::HybridEp), factor(RowKernels::DeepEp));
  const Collective gather = {.kind = CollectiveKind::AllGather, .bytes = {128 << 20}};
  EXPECT_EQ(collective_cost(network.gpu({0}), gather, path, RowKernels::DeepEp),
            collective_cost(network.gpu({0}), gather, path));
}

// The same tokens by NCCL on H100, in nodes of eight with 400 Gb/s for each GPU (arXiv:2603.07685): on two nodes half of the parts are for
// the own node, which NVLink carries while the network waits.
TEST(CollectiveCost, AllToAllsOverNodesSendToTheirOwnFirst) {
  const auto time = [&](int nodes, RowKernels kernels) {
    const Network network(load_cluster("dgx-h100-x" + std::to_string(nodes)));
    const Collective what = {.kind = CollectiveKind::AllToAll, .bytes = {std::int64_t{8} * 4096 * 7168 * 2}};
    const CommunicationPath path = communication_path(network, what, first(8 * nodes));
    const Cost cost = collective_cost(network.gpu({0}), what, path, kernels);
    return 1e6 * (to_seconds(cost.busy).value + path.bytes * cost.wire_factor / path.bandwidth.value);
  };
  EXPECT_NEAR(time(2, RowKernels::Nccl) / 5774, 1, 0.05);
  EXPECT_NEAR(time(8, RowKernels::Nccl) / 9164, 1, 0.05);
  EXPECT_LT(time(2, RowKernels::DeepEp), 0.9 * time(2, RowKernels::Nccl));
}

// DeepSeek-V3's tokens on GB200: 4096 of 7168 elements on each rank, eight rows each: arXiv:2603.07685 has 735 us on 8 and 930 us on 64
// GPUs for NCCL. HybridEP, which sends a token once to each rank (5.3 and 7.6 of them), took 391 and 675 us.
TEST(CollectiveCost, TokensOfDeepSeekOnGb200) {
  const Network network(load_cluster("gb200-nvl72"));
  const auto time = [&](int ranks, double rows, bool once) {
    const Collective what = {.kind = CollectiveKind::AllToAll, .bytes = {std::llround(rows * 4096 * 7168 * 2)}};
    const CommunicationPath path = path_of(network, what, first(ranks));
    const Cost cost = collective_cost(network.gpu({0}), what, path, once ? RowKernels::HybridEp : RowKernels::Nccl);
    return 1e6 * (to_seconds(cost.busy).value + path.bytes * cost.wire_factor / path.bandwidth.value);
  };
  EXPECT_NEAR(time(8, 8, false), 735, 50);
  EXPECT_NEAR(time(64, 8, false), 930, 60);
  EXPECT_NEAR(time(8, 5.3, true), 391, 80);
  EXPECT_NEAR(time(64, 7.6, true), 675, 170);
}

TEST(CollectiveCost, ExchangesAndCopies) {
  const Gpu gpu = load_gpu("a100-80");
  const CommunicationPath path = {.members = 2,
                                  .nodes = 2,
                                  .steps = 1,
                                  .step_latency = {2e-6},
                                  .link = LinkKind::Network,
                                  .bytes = 1e6,
                                  .bandwidth = {25e9}};
  const Cost exchange = exchange_cost(gpu, {.bytes = {1000000}}, path);
  EXPECT_EQ(exchange.busy, to_nanoseconds(gpu.launch_overhead + Seconds{8.4e-6 + 14.0e-6}));
  EXPECT_DOUBLE_EQ(exchange.wire_factor, 1);
  const Cost copy = copy_cost(gpu, {.bytes = {1000000}});
  EXPECT_EQ(copy.sm_share, 0);
  EXPECT_DOUBLE_EQ(copy.wire_factor, 1);
  EXPECT_GT(copy_cost(gpu, {}, false).wire_factor, copy.wire_factor);
}

}  // namespace
}  // namespace foreshard::collective_cost_test
