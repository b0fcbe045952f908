// Casts of operands to codes: what they move by framework and GPU, and what Transformer Engine measured.
#include <gtest/gtest.h>

#include <set>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/narrow_gathers.h"
#include "strategy/kernels/op_cost.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::operand_casts_test {
namespace {

constexpr EightBits kDelayed = {.fused_copies = true}, kCurrent = {.maxima = true, .fused_copies = true},
                    kBlocks = {.fused_copies = true, .blocks = true};

Compute product(std::int64_t m, std::int64_t k, std::int64_t n, DType code, Phase phase = Phase::Forward) {
  return {.op = ops::MatMul{}, .phase = phase, .shapes = {{.dims = {1, m, n, k}, .dtype = code}}};
}

// Bytes of the casts for each element, at the speed of a stream.
double bytes_per_element(const EightBits& rules, const std::string& gpu, const OperandCast& cast = {}, DType code = DType::F8) {
  const Compute run = product(1024, 4096, 1536, code);
  const double further = static_cast<double>(further_casts(run, rules, machine_constants(load_gpu(gpu)), cast).value);
  return coding_bytes(code) + further / (1024.0 * 4096);
}

// Hopper's products read operands that are contiguous along k alone, so that gradients need transposed copies: of a cast that writes both
// layouts 4 bytes, behind a gather 2 for the whole tensor. Blackwell's read either.
TEST(OperandCasts, TransposedCopies) {
  EXPECT_NEAR(bytes_per_element({}, "h100-80"), 5, 1e-6);
  EXPECT_NEAR(bytes_per_element({}, "b200"), 5, 1e-6);
  EXPECT_NEAR(bytes_per_element(kDelayed, "h100-80"), 4, 1e-6);
  EXPECT_NEAR(bytes_per_element(kDelayed, "b200"), 3, 1e-6);
  EXPECT_NEAR(bytes_per_element(kDelayed, "h100-80", {.members = 4}), 3.0 / 4 + 2, 1e-6);
  EXPECT_NEAR(bytes_per_element(kDelayed, "b200", {.members = 4}), 3.0 / 4, 1e-6);
  EXPECT_NEAR(bytes_per_element(kCurrent, "h100-80"), 6, 1e-6);
}

// The norm wrote the codes: what is left is the transposed copy, of the codes.
TEST(OperandCasts, BehindANorm) {
  EXPECT_NEAR(bytes_per_element(kDelayed, "h100-80", {.coded = true}), 2, 1e-6);
  EXPECT_NEAR(bytes_per_element(kDelayed, "b200", {.coded = true}), 0, 1e-6);
  EXPECT_NEAR(bytes_per_element(kBlocks, "b200", {.coded = true}), 0, 1e-6);
  const Compute norm = {.op = ops::Norm{}, .phase = Phase::Forward, .shapes = {{.dims = {1024, 4096}, .dtype = DType::BF16}}};
  const auto beyond = [&](const EightBits& rules, const std::string& gpu, bool coded) {
    return static_cast<double>(further_casts(norm, rules, machine_constants(load_gpu(gpu)), {.coded = coded}).value) /
           (1024.0 * 4096);
  };
  EXPECT_NEAR(beyond(kDelayed, "h100-80", true), -1, 1e-6);
  EXPECT_NEAR(beyond(kBlocks, "b200", true), 2.0 / 32, 1e-6);  // both layouts, with scales
  EXPECT_EQ(beyond(kDelayed, "h100-80", false), 0);
}

// Scales of blocks are of Blackwell; elsewhere the rules of one scale per tensor hold.
TEST(OperandCasts, ScalesOfBlocks) {
  const MachineConstants& blackwell = machine_constants(load_gpu("b200"));
  EXPECT_NEAR(bytes_per_element(kBlocks, "b200"), (2 + 2 + 2.0 / 32) / blackwell.codes.block_casts, 1e-3);
  EXPECT_EQ(bytes_per_element(kBlocks, "h100-80"), bytes_per_element(kDelayed, "h100-80"));
  EXPECT_EQ(product_speed(kBlocks, blackwell), blackwell.codes.block_products);
  EXPECT_EQ(product_speed(kBlocks, machine_constants(load_gpu("h100-80"))), 1);
  EXPECT_EQ(product_speed(kDelayed, blackwell), 1);
}

// Transformer Engine docs/examples/gemm_profiling/gemm_profiling.rst at d0067d0 times the 12 products of a layer (hidden 4096, 15,872
// tokens, 16,384 in between) on inputs in 16 bits and on codes made before, B300 and H200 NVL. The difference, corrected by what bf16 took
// in both runs, is the casts of both operands: of the first in both layouts, of the weights in one. Milliseconds.
struct Measured {
  const char* gpu;
  EightBits rules;
  DType code;
  double whole, coded, bf16, bf16_coded;
};
constexpr Measured kMeasured[] = {{"b300", kBlocks, DType::F8, 8.984, 7.161, 12.758, 13.102},
                                  {"b300", kDelayed, DType::F8, 7.802, 6.812, 12.758, 13.102},
                                  {"b300", kCurrent, DType::F8, 9.147, 6.812, 12.758, 13.102},
                                  {"b300", {}, DType::F4, 6.453, 3.764, 12.758, 13.102},
                                  {"h200-nvl-141", kDelayed, DType::F8, 18.978, 16.785, 32.014, 31.968},
                                  {"h200-nvl-141", kCurrent, DType::F8, 20.285, 16.785, 32.014, 31.968}};

TEST(OperandCasts, AsTransformerEngineMeasured) {
  constexpr std::int64_t kTokens = 15872, kHidden = 4096, kInner = 16384;
  struct Sizes {
    std::int64_t m, k, n;
  };
  constexpr Sizes kProducts[] = {
      {kTokens, kHidden, 3 * kHidden}, {kTokens, kHidden, kHidden}, {kTokens, kHidden, kInner}, {kTokens, kInner, kHidden},
      {kTokens, 3 * kHidden, kHidden}, {kTokens, kHidden, kHidden}, {kTokens, kInner, kHidden}, {kTokens, kHidden, kInner},
      {kHidden, kTokens, 3 * kHidden}, {kHidden, kTokens, kHidden}, {kHidden, kTokens, kInner}, {kInner, kTokens, kHidden}};
  for (const Measured& row : kMeasured) {
    const Gpu gpu = load_gpu(row.gpu);
    const MachineConstants& machine = machine_constants(gpu);
    const double casts = row.whole - row.coded * row.bf16 / row.bf16_coded;
    double predicted = 0;
    for (const Sizes& of : kProducts) {
      const Compute run = product(of.m, of.k, of.n, row.code);
      const double further = static_cast<double>(further_casts(run, row.rules, machine, {}).value);
      const double slower = row.code == DType::F4 ? machine.codes.fp4_casts : 1;
      const double first = coding_bytes(row.code) * static_cast<double>(of.m * of.k) / slower + further;
      // The weights: one layout, where the first operand has two.
      const bool blocks = row.rules.blocks;
      const double largest = row.rules.maxima ? 2 / machine.codes.maxima : 0;
      const double each = row.code == DType::F4 ? (4 + 0.5 + 0.125) / machine.codes.fp4_casts
                          : blocks              ? (3 + 1.0 / 32) / machine.codes.block_casts
                                                : 3 + largest;
      const double bytes = first + each * static_cast<double>(of.k * of.n);
      const int launches = row.code == DType::F4 ? 6 : row.rules.maxima ? 4 : 2;
      predicted += streamed_time(gpu, {static_cast<std::int64_t>(bytes)}).value + launches * gpu.launch_overhead.value;
    }
    std::printf("%s: casts %.2f ms, predicted %.2f (%+.1f %%)\n", row.gpu, casts, 1e3 * predicted,
                100 * (1e3 * predicted / casts - 1));
    EXPECT_NEAR(1e3 * predicted / casts, 1, 0.08);
  }
}

// [name of an instruction of the first forward]: norms that write codes, and products that read these.
std::set<std::string> coded_in_forward(const Model& model, const Strategy& strategy) {
  const Plan plan = lowered(model, load_cluster("dgx-h100"), strategy).plan;
  std::set<std::string> names;
  for (const Segment& segment : plan.segments) {
    if (!segment.name.starts_with("forward.0")) continue;
    const std::vector<bool> coded = coded_norms(segment, narrow_gathers(plan, plan.roles.front(), segment));
    for (std::size_t i = 0; i < coded.size(); ++i)
      if (coded[i]) names.insert(segment.instructions[i].name);
  }
  return names;
}

Model small(const std::string& name) {
  Model model = load_model(name);
  std::get<Transformer>(model.shape).layers = 1;
  return model;
}

TEST(OperandCasts, NormsThatWriteCodes) {
  Strategy s = {.dp = 1, .tp = 8, .batch = {.micro = 1, .global = 1, .seq = 1024}};
  s.sequence_parallel = true, s.precision = DType::F8;
  EXPECT_EQ(coded_in_forward(small("llama-2-7b"), s), (std::set<std::string>{"norm1", "qkv", "norm2", "fc1"}));
  s.precision = DType::BF16;
  EXPECT_EQ(coded_in_forward(small("llama-2-7b"), s), std::set<std::string>{});
  s.precision = DType::F8, s.optimizer.lora.rank = 16;  // adapters read the input of the attention in 16 bits
  EXPECT_EQ(coded_in_forward(small("llama-2-7b"), s), (std::set<std::string>{"norm2", "fc1"}));
  Strategy experts = {.dp = 8, .experts = {.ep = 8}, .batch = {.micro = 1, .global = 8, .seq = 1024}};
  experts.precision = DType::F8;
  EXPECT_EQ(coded_in_forward(small("mixtral-8x7b"), experts), (std::set<std::string>{"norm1", "qkv"}));  // a router reads norm2
}

}  // namespace
}  // namespace foreshard::operand_casts_test
