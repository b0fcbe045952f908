// Gathers along the sequence in 8 bits: which collectives of plans they are, and what they and their readers cost.
#include "strategy/cost/narrow_gathers.h"

#include <gtest/gtest.h>

#include <set>

#include "core/cluster_file/cluster_file.h"
#include "core/network/network.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/kernels/op_cost.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::narrow_gathers_test {
namespace {

constexpr int kTensor = 8;

Strategy tensor_parallel(DType precision, int rank = 0) {
  Strategy s = {.dp = 1, .tp = kTensor, .batch = {.micro = 1, .global = 1, .seq = 1024}};
  s.sequence_parallel = true, s.precision = precision;
  s.optimizer.lora.rank = rank;
  return s;
}

Model small(const std::string& name) {
  Model model = load_model(name);
  std::get<Transformer>(model.shape).layers = 1;
  return model;
}

using Pairs = std::set<std::pair<std::string, std::string>>;  // segment, "gather > reader"
Pairs pairs_of(const Plan& plan) {
  Pairs pairs;
  for (const Segment& segment : plan.segments) {
    const std::vector<int> gathers = narrow_gathers(plan, plan.roles.front(), segment);
    for (std::size_t i = 0; i < gathers.size(); ++i)
      if (gathers[i] >= 0 && gathers[i] != static_cast<int>(i))
        pairs.emplace(segment.name,
                      segment.instructions[static_cast<std::size_t>(gathers[i])].name + " > " + segment.instructions[i].name);
  }
  return pairs;
}

Plan plan_of(DType precision, int rank = 0) {
  return lowered(small("llama-2-7b"), load_cluster("dgx-h100"), tensor_parallel(precision, rank)).plan;
}

// Inputs of queries and of the first product of the MLP, again for the gradients of their weights, and gradients of the results of the other
// two products. The head and the embedding stay at 16 bits.
TEST(NarrowGathers, InputsAndGradientsOfEightBitProducts) {
  const Pairs expected = {{"forward.0", "qkv_gather > qkv"},  {"forward.0", "fc1_gather > fc1"},
                          {"backward.0", "qkv_gather > qkv"}, {"backward.0", "fc1_gather > fc1"},
                          {"backward.0", "fc2_reduce > fc2"}, {"backward.0", "projection_reduce > projection"}};
  EXPECT_EQ(pairs_of(plan_of(DType::F8)), expected);
  EXPECT_EQ(pairs_of(plan_of(DType::BF16)), Pairs{});
}

// Adapters of the attention read its input and the gradient of its result in 16 bits. Frozen weights need no input in the backward.
TEST(NarrowGathers, NotWhatAdaptersRead) {
  const Pairs expected = {{"forward.0", "fc1_gather > fc1"}, {"backward.0", "fc2_reduce > fc2"}};
  EXPECT_EQ(pairs_of(plan_of(DType::F8, 16)), expected);
}

// 3 bytes for each element of the operand that other ranks quantise: inputs of 4096 numbers, gradients of 1536. A pass for the largest
// magnitude reads 2 of each element, or of the rank's part.
TEST(NarrowGathers, EachRankCastsItsPart) {
  const std::int64_t input = 1024 * 4096, gradient = 1024 * 1536;
  Compute product = {
      .op = ops::MatMul{}, .phase = Phase::Forward, .shapes = {{.dims = {1, 1024, 1536, 4096}, .dtype = DType::F8}}};
  EXPECT_EQ(further_casts(product, false, 8).value, -3 * input / 8 * 7);
  EXPECT_EQ(further_casts(product, false, 1).value, 0);
  EXPECT_EQ(further_casts(product, true, 1).value, 2 * input);
  EXPECT_EQ(further_casts(product, true, 8).value, 2 * input / 8 - 3 * input / 8 * 7);
  product.phase = Phase::InputGrad;
  EXPECT_EQ(further_casts(product, false, 8).value, -3 * gradient / 8 * 7);
  product.phase = Phase::WeightGrad;
  EXPECT_EQ(further_casts(product, true, 8).value, 0);
  product.phase = Phase::Forward, product.shapes.front().dtype = DType::BF16;
  EXPECT_EQ(further_casts(product, true, 1).value, 0);
}

// [instruction of the first forward segment]
std::vector<Cost> costs_of(const FrameworkPreset& preset, std::vector<std::string>* names = nullptr) {
  Plan plan = plan_of(DType::F8);
  cost_plan(plan, load_cluster("dgx-h100"), preset);
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    if (!plan.segments[s].name.starts_with("forward")) continue;
    for (const Instruction& run : plan.segments[s].instructions)
      if (names) names->push_back(run.name);
    return plan.costs.front().by_segment[s];
  }
  return {};
}

TEST(NarrowGathers, HalfTheBytesAndFewerCasts) {
  std::vector<std::string> names;
  const std::vector<Cost> wide = costs_of({}, &names), narrow = costs_of({.eight_bits = {.gathers = true}});
  const Cluster cluster = load_cluster("dgx-h100");
  const double casts = streamed_time(Network(cluster).gpu({0}), {3 * 1024 * 4096 / kTensor * (kTensor - 1)}).value;
  int gathers = 0, products = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const bool gather = names[i] == "qkv_gather" || names[i] == "fc1_gather", product = names[i] == "qkv" || names[i] == "fc1";
    gathers += gather, products += product;
    EXPECT_DOUBLE_EQ(narrow[i].wire_factor, gather ? wide[i].wire_factor / 2 : wide[i].wire_factor) << names[i];
    EXPECT_NEAR(to_seconds(wide[i].busy - narrow[i].busy).value, product ? casts : 0, 2e-9) << names[i];
  }
  EXPECT_EQ(gathers, 2);
  EXPECT_EQ(products, 2);
}

TEST(NarrowGathers, FrameworksOnTransformerEngineAndTorchao) {
  for (const char* name : {"megatron", "nemo", "megatron-bridge", "nemo-lora", "torchtitan"})
    EXPECT_TRUE(framework_preset(name).eight_bits.gathers) << name;
  for (const char* name : {"torchtitan-rowwise", "fsdp2", "foreshard", "llmq"})
    EXPECT_FALSE(framework_preset(name).eight_bits.gathers) << name;
}

}  // namespace
}  // namespace foreshard::narrow_gathers_test
