// Measured collectives: bandwidths as nccl-tests define them, the fit of a link, the order and the file.
#include "core/profile/profile_collectives.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard::profile_collectives_test {
namespace {

std::string written(const std::vector<CollectiveMeasure>& measures) {
  JsonWriter json;
  json.begin_object();
  write_collectives(json, measures);
  return json.end_object().text();
}

std::string message(const std::string& entries) {
  try {
    read_collectives(JsonReader::parse("[" + entries + "]", "p.json"));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string entry(const std::string& rest) { return R"({"collective": "all_reduce", "algorithm": "ring", )" + rest + "}"; }

}  // namespace

// 1000 bytes in 1 ms over 4 ranks: 1e6 bytes a second; an all-reduce moves 2 * 3/4 of it, the one-way collectives 3/4, a broadcast all.
TEST(ProfileCollectives, BusBandwidthIsThatOfNcclTests) {
  const auto bus = [](CollectiveKind kind) {
    const CollectiveMeasure at{.kind = kind, .ranks = 4, .bytes = {1000}, .time = {1e-3}};
    EXPECT_DOUBLE_EQ(at.algorithm_bandwidth().value, 1e6);
    return at.bus_bandwidth().value;
  };
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::AllReduce), 1.5e6);
  for (const CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll})
    EXPECT_DOUBLE_EQ(bus(kind), 0.75e6) << static_cast<int>(kind);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::Broadcast), 1e6);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::Reduce), 1e6);
}

// Times made from a latency and a bandwidth by the formula in the header give these two back.
TEST(ProfileCollectives, TheFitFindsTheLinkThatMadeTheTimes) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 50; ++trial) {
    const double latency = std::uniform_real_distribution<>(1e-6, 1e-4)(random),
                 bandwidth = std::uniform_real_distribution<>(1e8, 1e11)(random);
    std::vector<CollectiveMeasure> measures;
    for (const int ranks : {2, 4, 8})
      for (const std::int64_t bytes : {1 << 12, 1 << 20, 1 << 28}) {
        const double step = latency + static_cast<double>(bytes) / ranks / bandwidth;
        measures.push_back({.link = MeasuredLink::Pcie, .ranks = ranks, .bytes = {bytes}, .time = {2 * (ranks - 1) * step}});
      }
    measures.push_back({.link = MeasuredLink::Node, .bytes = {1 << 20}, .time = {5}});  // not of these links
    measures.push_back({.kind = CollectiveKind::Broadcast, .link = MeasuredLink::Pcie, .bytes = {1 << 20}, .time = {5}});
    const auto fit = fitted_link(measures, MeasuredLink::Pcie);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->latency.value / latency, 1, 1e-6);
    EXPECT_NEAR(fit->bandwidth.value / bandwidth, 1, 1e-6);
    EXPECT_FALSE(fitted_link(measures, MeasuredLink::Node));  // one size does not tell latency from bandwidth
  }
}

TEST(ProfileCollectives, TheOrderIsByKindAlgorithmLinkNodesRanksBytes) {
  const CollectiveMeasure a{.link = MeasuredLink::Network, .ranks = 8, .nodes = 2, .bytes = {64}};
  const auto before = [&](auto change) {
    CollectiveMeasure b = a;
    b.bytes = {1};
    change(b);
    return comes_before(a, b) && !comes_before(b, a);
  };
  EXPECT_TRUE(before([](CollectiveMeasure& b) { b.kind = CollectiveKind::AllGather, b.nodes = 1; }));
  EXPECT_TRUE(before([](CollectiveMeasure& b) { b.algorithm = MeasuredAlgorithm::Ring, b.nodes = 1; }));
  EXPECT_TRUE(before([](CollectiveMeasure& b) { b.nodes = 4, b.ranks = 4; }));
  EXPECT_TRUE(before([](CollectiveMeasure& b) { b.ranks = 16; }));
  EXPECT_TRUE(before([](CollectiveMeasure& b) { b.bytes = {65}; }));
  EXPECT_FALSE(comes_before(a, a));
}

TEST(ProfileCollectives, ReadsBackWhatItWrote) {
  const std::vector<CollectiveMeasure> measures = {
      {.algorithm = MeasuredAlgorithm::NvlsTree, .link = MeasuredLink::NvLink, .ranks = 8, .bytes = {8192}, .time = {2e-5}},
      {.kind = CollectiveKind::AllToAll, .link = MeasuredLink::Network, .ranks = 6, .nodes = 3, .bytes = {7}, .time = {1e-4}}};
  EXPECT_EQ(read_collectives(JsonReader::parse(written(measures), "p.json").at("collectives")), measures);
}

// 1000 bytes in 1 ms are 1e6 bytes a second; the file may say so with three digits, but not say another number.
TEST(ProfileCollectives, WhatIsWrongIsRefused) {
  const std::string good = R"("link": "pcie", "ranks": 2, "nodes": 1, "bytes": 1000, "seconds": 0.001)";
  EXPECT_EQ(message(entry(good + R"(, "algbw": 1000400)")), "no error");
  EXPECT_NE(message(entry(good + R"(, "algbw": 1100000)")).find("1000000, which follows from bytes, ranks and seconds"),
            std::string::npos);
  EXPECT_NE(message(entry(good) + ", " + entry(good)).find("an entry that comes after the one before"), std::string::npos);
  EXPECT_NE(
      message(entry(R"("link": "pcie", "ranks": 2, "nodes": 1, "bytes": 1000, "seconds": 0)")).find("more than 0 seconds"),
      std::string::npos);
  EXPECT_NE(
      message(entry(R"("link": "pcie", "ranks": 2, "nodes": 2, "bytes": 1, "seconds": 1)")).find("1, the link being pcie"),
      std::string::npos);
  EXPECT_NE(message(entry(R"("link": "network", "ranks": 5, "nodes": 2, "bytes": 1, "seconds": 1)"))
                .find("equally many of the 5 ranks on each"),
            std::string::npos);
}

TEST(ProfileCollectives, WordsAreInTheOrderOfTheEnumerators) {
  EXPECT_EQ(word_of(MeasuredLink::Process), "process");
  EXPECT_EQ(word_of(MeasuredLink::Network), measured_links().back());
  EXPECT_EQ(word_of(MeasuredAlgorithm::CollnetChain), "collnet_chain");
  EXPECT_EQ(word_of(MeasuredAlgorithm::Pat), measured_algorithms().back());
}

}  // namespace foreshard::profile_collectives_test
