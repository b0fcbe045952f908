#include "core/profile/machine_profile.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"

namespace foreshard::machine_profile_test {
namespace {

MachineProfile small() {
  return {
      .device = "host",
      .machine = "a test",
      .launch_overhead = {1e-7},
      .link_latency = {2e-6},
      .link_bandwidth = {5e9},
      .collective_share = 0.125,
      .outside_memory = {700'000'000},
      .copies = {{1, {4096}, {1e-6}}, {1, {8192}, {1.5e-6}}},
      .all_reduces = {{2, {4096}, {3e-6}}, {4, {1024}, {3e-6}}},
      .collectives =
          {{.algorithm = MeasuredAlgorithm::Direct, .link = MeasuredLink::Node, .ranks = 4, .bytes = {4096}, .time = {1e-5}},
           {.algorithm = MeasuredAlgorithm::Ring, .link = MeasuredLink::NvLink, .ranks = 8, .bytes = {8192}, .time = {2e-5}},
           {.kind = CollectiveKind::AllGather,
            .link = MeasuredLink::Network,
            .ranks = 8,
            .nodes = 2,
            .bytes = {65536},
            .time = {1e-4}}},
      .ops = {{.op = "matmul", .variant = "1", .samples = {{{1, 2, 3, 4}, {80}, {0.25}}, {{1, 8, 8, 8}, {768}, {0.5}}}},
              {.op = "attention",
               .phase = Phase::Backward,
               .dtype = DType::BF16,
               .variant = "2 causal",
               .samples = {{{1}, {2}, {3}}}}}};
}

TEST(MachineProfile, ReadsBackWhatItWrote) {
  MachineProfile read = parse_machine_profile(to_json(small()), "p.json");
  EXPECT_EQ(read.hash.size(), 16U);
  MachineProfile other = small();
  other.ops[0].samples[0].time = {0.26};
  EXPECT_NE(parse_machine_profile(to_json(other), "p.json").hash, read.hash);
  read.hash = "";
  EXPECT_EQ(read, small());
}

// What was written before there were classes of links: all but "collectives".
TEST(MachineProfile, EarlierFilesAreRead) {
  std::string text = to_json(small());
  const std::size_t begin = text.find("  \"collectives\""), end = text.find("  \"ops\"");
  ASSERT_LT(begin, end);
  text.erase(begin, end - begin);
  MachineProfile expected = small(), read = parse_machine_profile(text, "p.json");
  expected.collectives.clear(), read.hash = "";
  EXPECT_EQ(read, expected);
}

std::string message(const std::string& path, const std::string& value) {
  try {
    parse_machine_profile(with_json_value(to_json(small()), path, value, "test"), "p.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(MachineProfile, WrongFilesAreTold) {
  EXPECT_EQ(message("version", "3"), "p.json: version: found 3, expected an integer from 1 to 2");
  EXPECT_NE(message("collective_share", "1").find("collective_share: found 1"), std::string::npos);
  EXPECT_EQ(message("device", "\"\""), "p.json: device: found \"\", expected the name of a device");
  EXPECT_NE(message("ops[0].op", "\"matmull\"").find("nearest: \"matmul\""), std::string::npos)
      << message("ops[0].op", "\"matmull\"");
  EXPECT_EQ(message("ops[0].samples[0].seconds", "0"),
            "p.json: ops[0].samples[0].seconds: found 0, expected more than 0 seconds");
  EXPECT_EQ(message("ops[0].samples[1].dims", "[1, 2]"),
            "p.json: ops[0].samples[1].dims: found an array of 2, expected as many sizes as the first sample has");
  EXPECT_EQ(message("copies[1].bytes", "4096"),
            "p.json: copies[1].bytes: found 4096, expected more than the entry before, so that sizes grow");
  EXPECT_NE(message("all_reduces[0].ranks", "1").find("all_reduces[0].ranks: found 1"), std::string::npos);
  EXPECT_NE(message("link_bandwidth", "0").find("link_bandwidth: found 0"), std::string::npos);
  EXPECT_THROW(parse_machine_profile("{", "p.json"), Error);
}

TEST(MachineProfile, WrongCollectivesAreTold) {
  EXPECT_NE(message("collectives[0].link", "\"nvlinc\"").find("collectives[0].link: found \"nvlinc\""), std::string::npos);
  EXPECT_NE(message("collectives[0].link", "\"nvlinc\"").find("nearest: \"nvlink\""), std::string::npos);
  EXPECT_NE(message("collectives[1].algorithm", "\"rings\"").find("nearest: \"ring\""), std::string::npos);
  EXPECT_NE(message("collectives[2].collective", "\"gather\"").find("collectives[2].collective: found \"gather\""),
            std::string::npos);
  EXPECT_EQ(message("collectives[0].seconds", "0"), "p.json: collectives[0].seconds: found 0, expected more than 0 seconds");
  EXPECT_EQ(message("collectives[0].ranks", "1").find("p.json: collectives[0].ranks: found 1, expected an integer from 2"), 0U);
  EXPECT_EQ(message("collectives[0].nodes", "2"), "p.json: collectives[0].nodes: found 2, expected 1, the link being node");
  EXPECT_EQ(message("collectives[2].nodes", "3"),
            "p.json: collectives[2].nodes: found 3, expected 2 or more, the link being the network, and equally many of the 8 "
            "ranks on each");
  // 4096 bytes in 10 us are 409.6 MB/s; an all-reduce of 4 has 2 * 3 / 4 of that on the bus.
  EXPECT_EQ(message("collectives[0].algbw", "5e8"),
            "p.json: collectives[0].algbw: found 5e+08, expected 409600000, which follows from bytes, ranks and seconds (or "
            "no algbw)");
  EXPECT_NE(message("collectives[0].busbw", "409600000").find("expected 614400000"), std::string::npos);
  EXPECT_EQ(message("collectives[0].busbw", "614e6"), "");  // rounded by hand
  EXPECT_NE(message("collectives[1].algorithm", "\"automatic\"").find("collectives[1]: found an object"), std::string::npos);
  EXPECT_NE(message("collectives[0].size", "3").find("size"), std::string::npos);
}

// Times made of a link of 10 us and 2 GB/s over 2 and 4 ranks give it back: t = 2 (n - 1) (10 us + bytes / n / 2 GB/s). One size does not.
TEST(CollectiveMeasure, TheLinkIsFitted) {
  std::vector<CollectiveMeasure> measures;
  for (const int n : {2, 4})
    for (std::int64_t bytes = 4096; bytes <= 1 << 24; bytes *= 4)
      measures.push_back({.link = MeasuredLink::Pcie,
                          .ranks = n,
                          .bytes = {bytes},
                          .time = {2.0 * (n - 1) * (10e-6 + static_cast<double>(bytes) / n / 2e9)}});
  measures.push_back(
      {.kind = CollectiveKind::AllGather, .link = MeasuredLink::Pcie, .bytes = {4096}, .time = {1}});  // not of the fit
  measures.push_back({.link = MeasuredLink::NvLink, .bytes = {4096}, .time = {1}});
  const auto fit = fitted_link(measures, MeasuredLink::Pcie);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->latency.value, 10e-6, 1e-12);
  EXPECT_NEAR(fit->bandwidth.value, 2e9, 1);
  EXPECT_FALSE(fitted_link(measures, MeasuredLink::NvLink));
  EXPECT_FALSE(fitted_link(measures, MeasuredLink::Network));
}

// nccl-tests: an all-reduce of 8 ranks has 2 * 7 / 8 = 1.75 times its algorithm bandwidth on the bus, an all-gather 0.875, a broadcast 1 times.
TEST(CollectiveMeasure, BandwidthsAreThoseOfNcclTests) {
  CollectiveMeasure at{.ranks = 8, .bytes = {1'000'000}, .time = {1e-3}};
  EXPECT_DOUBLE_EQ(at.algorithm_bandwidth().value, 1e9);
  const std::pair<CollectiveKind, double> factors[] = {
      {CollectiveKind::AllReduce, 1.75}, {CollectiveKind::AllGather, 0.875}, {CollectiveKind::ReduceScatter, 0.875},
      {CollectiveKind::AllToAll, 0.875}, {CollectiveKind::Broadcast, 1},     {CollectiveKind::Reduce, 1}};
  for (const auto& [kind, factor] : factors) {
    at.kind = kind;
    EXPECT_DOUBLE_EQ(at.bus_bandwidth().value, factor * 1e9);
  }
}

// Version 1 had one name for several operators, which the variant told apart.
TEST(MachineProfile, OperatorsOfVersion1AreRenamed) {
  const auto read = [](const std::string& op, const std::string& variant) {
    MachineProfile profile = small();
    profile.ops = {{.op = op, .variant = variant, .samples = {{{1}, {2}, {3}}}}};
    std::string text = to_json(profile);
    text.replace(text.find("\"version\": 2"), 12, "\"version\": 1");
    const ProfileOp found = parse_machine_profile(text, "p.json").ops.front();
    return found.op + ": " + found.variant;
  };
  EXPECT_EQ(read("matmul", "1 first_token"), "matmul: 1 first_token");
  EXPECT_EQ(read("matmul", "1 scores causal accumulate"), "scores: 1 causal accumulate");
  EXPECT_EQ(read("matmul", "1 values"), "weighted_values: 1");
  EXPECT_EQ(read("embedding", "1 tokens"), "token_embedding: 1");
  EXPECT_EQ(read("embedding", "1 positions types sequence_parallel"),
            "position_embedding: 1 positions types sequence_parallel");
  EXPECT_EQ(read("embedding", "1 sample"), "sample: 1");
  EXPECT_EQ(read("norm", "1 rmsnorm accumulate_weights"), "norm: 1 rmsnorm accumulate_weights");
  EXPECT_EQ(read("activation", "1 swiglu"), "activation: 1 swiglu");
  EXPECT_EQ(read("attention", "2 causal p"), "attention: 2 causal p");
  EXPECT_EQ(read("cross_entropy", "1 dynamic_scale stage=exp"), "cross_entropy: 1 dynamic_scale exp next_token");
  EXPECT_EQ(read("cross_entropy", "1 label"), "cross_entropy: 1 whole label");
  EXPECT_EQ(read("adam", "1 slice"), "adam: 1 slice");
}

// What differs in size only is one kind; what differs in words, or adds to its output, is another.
TEST(MachineProfile, VariantsTellKernelsApart) {
  const Compute plain{.op = ops::Attention{.causal = true, .heads = 8, .kv_heads = 8, .dim = 64}, .shapes = {{}, {}}};
  Compute other = plain;
  other.op = ops::Attention{.causal = true, .heads = 16, .kv_heads = 2, .dim = 32};
  EXPECT_EQ(variant_of(plain), "2 causal");
  EXPECT_EQ(variant_of(other), variant_of(plain));
  other.op = ops::Attention{.heads = 16, .kv_heads = 2, .dim = 32, .p = 0.1, .site = 2};
  EXPECT_EQ(variant_of(other), "2 p");
  other.op = ops::CrossEntropy{.piece = ops::CrossEntropy::Piece::Max, .classes = 100}, other.accumulate = true;
  EXPECT_EQ(variant_of(other), "2 max next_token accumulate");
  other.op = ops::GradNorm{.divide = 3}, other.slice = {1}, other.accumulate = false;
  EXPECT_EQ(variant_of(other), "2 slice");
}

}  // namespace
}  // namespace foreshard::machine_profile_test
