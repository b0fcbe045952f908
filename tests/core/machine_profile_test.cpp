#include "core/machine_profile.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json.h"
#include "core/json_edit.h"

namespace foreshard {
namespace {

MachineProfile small() {
  return {.device = "host",
          .machine = "a test",
          .launch_overhead = {1e-7},
          .link_latency = {2e-6},
          .link_bandwidth = {5e9},
          .collective_share = 0.125,
          .outside_memory = {700'000'000},
          .copies = {{1, {4096}, {1e-6}}, {1, {8192}, {1.5e-6}}},
          .all_reduces = {{2, {4096}, {3e-6}}, {4, {1024}, {3e-6}}},
          .ops = {{.op = Op::MatMul, .variant = "1", .samples = {{{1, 2, 3, 4}, {80}, {0.25}}, {{1, 8, 8, 8}, {768}, {0.5}}}},
                  {.op = Op::Attention,
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

std::string message(const std::string& path, const std::string& value) {
  try {
    parse_machine_profile(with_json_value(to_json(small()), path, value, "test"), "p.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(MachineProfile, WrongFilesAreTold) {
  EXPECT_EQ(message("version", "2"), "p.json: version: found 2, expected an integer from 1 to 1");
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

// What differs in size only is one kind; what differs in words, or adds to its output, is another.
TEST(MachineProfile, VariantsTellKernelsApart) {
  const Compute plain{.op = Op::Attention, .shapes = {{}, {}}, .attributes = "causal heads=8 kv=8 dim=64"};
  Compute other = plain;
  other.attributes = "causal heads=16 kv=2 dim=32";
  EXPECT_EQ(variant_of(plain), "2 causal");
  EXPECT_EQ(variant_of(other), variant_of(plain));
  other.attributes = "heads=16 kv=2 dim=32 p=0.1 site=2";
  EXPECT_EQ(variant_of(other), "2 p");
  other.attributes = "stage=max classes=100", other.accumulate = true;
  EXPECT_EQ(variant_of(other), "2 stage=max accumulate");
  other.attributes = "slice=data parallel of 3", other.accumulate = false;
  EXPECT_EQ(variant_of(other), "2 slice");
}

}  // namespace
}  // namespace foreshard
