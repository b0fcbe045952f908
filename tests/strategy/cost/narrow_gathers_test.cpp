// Gathers along the sequence in 8 bits: which collectives of plans they are, and what they and their readers cost.
#include "strategy/cost/narrow_gathers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>

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

// NVFP4: 9/16 of a byte in place of two, and each rank codes its own part, both layouts of it: 7.375 bytes for each element of the others.
TEST(NarrowGathers, CodesOfFourBits) {
  const Plan plan = lowered(small("llama-2-7b"), load_cluster("dgx-b200"), tensor_parallel(DType::F4)).plan;
  EXPECT_EQ(pairs_of(plan), pairs_of(plan_of(DType::F8)));
  for (const Segment& segment : plan.segments)
    if (segment.name.starts_with("forward.0") || segment.name.starts_with("backward.0"))
      EXPECT_EQ(code_share(segment), 9.0 / 32);
  EXPECT_EQ(code_share(plan_of(DType::F8).segments.front()), 0.5);
  EXPECT_EQ(code_share(plan_of(DType::BF16).segments.front()), 1);
  const Compute product = {
      .op = ops::MatMul{}, .phase = Phase::Forward, .shapes = {{.dims = {1, 1024, 1536, 4096}, .dtype = DType::F4}}};
  for (const bool maxima : {false, true})
    EXPECT_EQ(further_casts(product, {.maxima = maxima}, {}, {.members = 8}).value,
              -static_cast<std::int64_t>(7.375 * (1024 * 4096 / 8 * 7)));
}

// Adapters of the attention read its input and the gradient of its result in 16 bits. Frozen weights need no input in the backward.
TEST(NarrowGathers, NotWhatAdaptersRead) {
  const Pairs expected = {{"forward.0", "fc1_gather > fc1"}, {"backward.0", "fc2_reduce > fc2"}};
  EXPECT_EQ(pairs_of(plan_of(DType::F8, 16)), expected);
}

// The dispatcher gathers rows over the ranks that share an expert, and the gradients of its results, before anything is quantised.
TEST(NarrowGathers, NotRowsOfExperts) {
  Strategy s = tensor_parallel(DType::F8);
  s.experts.etp = kTensor;
  const Plan plan = lowered(small("mixtral-8x7b"), load_cluster("dgx-h100"), s).plan;
  const auto gathers_rows = [](const Instruction& run) { return run.name == "dispatch_gather"; };
  EXPECT_TRUE(std::ranges::any_of(plan.segments,
                                  [&](const Segment& one) { return std::ranges::any_of(one.instructions, gathers_rows); }));
  const Pairs expected = {
      {"forward.0", "qkv_gather > qkv"}, {"backward.0", "qkv_gather > qkv"}, {"backward.0", "projection_reduce > projection"}};
  EXPECT_EQ(pairs_of(plan), expected);
}

// 3 bytes for each element of the operand that other ranks quantise: inputs of 4096 numbers, gradients of 1536. A pass for the largest
// magnitude reads 2 of each element, or of the rank's part.
TEST(NarrowGathers, EachRankCastsItsPart) {
  const std::int64_t input = 1024 * 4096, gradient = 1024 * 1536;
  Compute product = {
      .op = ops::MatMul{}, .phase = Phase::Forward, .shapes = {{.dims = {1, 1024, 1536, 4096}, .dtype = DType::F8}}};
  const auto bytes = [&](bool maxima, int members) {
    return further_casts(product, {.maxima = maxima}, {}, {.members = members}).value;
  };
  EXPECT_EQ(bytes(false, 8), -3 * input / 8 * 7);
  EXPECT_EQ(bytes(false, 1), 0);
  EXPECT_EQ(bytes(true, 1), 2 * input);
  EXPECT_EQ(bytes(true, 8), 2 * input / 8 - 3 * input / 8 * 7);
  product.phase = Phase::InputGrad;
  EXPECT_EQ(bytes(false, 8), -3 * gradient / 8 * 7);
  product.phase = Phase::WeightGrad;
  EXPECT_EQ(bytes(true, 8), 0);
  product.phase = Phase::Forward, product.shapes.front().dtype = DType::BF16;
  EXPECT_EQ(bytes(true, 1), 0);
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

// [name of a unit's gather]: its share of bytes that 8-bit products read, in a plan of one layer on eight replicas.
std::vector<double> shares_of(DType precision, int zero) {
  Strategy s = {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 1024}, .zero = {.stage = zero}};
  s.precision = precision;
  const Plan plan = lowered(small("llama-2-7b"), load_cluster("dgx-h100"), s).plan;
  const EightBitWeights weights(plan, plan.roles.front());
  std::vector<double> shares;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      if (const auto* what = std::get_if<Collective>(&run.what); what && what->kind == CollectiveKind::AllGather)
        shares.push_back(weights.share(plan.roles.front(), run.writes.front()));
  return shares;
}

// A layer of LLaMA 7B has 4 x 4096 x 4096 + 3 x 4096 x 11008 weights of products and two norms of 4096; embedding and head have none.
TEST(NarrowGathers, ParametersOfEightBitProducts) {
  const double products = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008, layer = products / (products + 2 * 4096);
  for (const int zero : {1, 3}) {
    const std::vector<double> shares = shares_of(DType::F8, zero);
    ASSERT_FALSE(shares.empty());
    EXPECT_NEAR(*std::ranges::max_element(shares), layer, 1e-3) << zero;
    if (zero == 1) EXPECT_EQ(*std::ranges::min_element(shares), 0);
    for (const double share : shares_of(DType::BF16, zero)) EXPECT_EQ(share, 0) << zero;
  }
}

TEST(NarrowGathers, ParametersInEightBitsTakeHalfTheBytes) {
  Strategy s = {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 1024}, .zero = {.stage = 3}};
  s.precision = DType::F8;
  const auto factor = [&](const FrameworkPreset& preset) {
    Plan plan = lowered(small("llama-2-7b"), load_cluster("dgx-h100"), s).plan;
    cost_plan(plan, load_cluster("dgx-h100"), preset);
    double least = 1e9;
    for (std::size_t g = 0; g < plan.segments.size(); ++g)
      for (std::size_t i = 0; i < plan.segments[g].instructions.size(); ++i)
        if (const auto* what = std::get_if<Collective>(&plan.segments[g].instructions[i].what))
          if (what->kind == CollectiveKind::AllGather && what->bytes > Bytes{1 << 28})
            least = std::min(least, plan.costs.front().by_segment[g][i].wire_factor);
    return least;
  };
  EXPECT_NEAR(factor({.eight_bits = {.parameters = true}}) / factor({}), 0.5, 1e-3);
}

Compute linear(Phase phase, std::int64_t m, std::int64_t k, std::int64_t n) {
  return {.op = ops::MatMul{}, .phase = phase, .shapes = {{.dims = {1, m, n, k}, .dtype = DType::F8}}};
}

// Forward, gradient to the input and gradient of the weights together move the stated bytes, beside the 5 that op_cost.h counts of input
// and gradient.
TEST(NarrowGathers, ScalesOfRowsMoveWhatThePresetStates) {
  const EightBits rules = {.rows = {.input = 30, .gradient = 12, .weight = 24}};
  const double m = 512, k = 256, n = 128;
  std::int64_t sum = 0;
  for (const Phase phase : {Phase::Forward, Phase::InputGrad, Phase::WeightGrad})
    sum += further_casts(linear(phase, 512, 256, 128), rules, {}, {}).value;
  EXPECT_EQ(sum, static_cast<std::int64_t>((30 - 5) * m * k + (12 - 5) * m * n + 24 * n * k));
  EXPECT_EQ(further_casts(linear(Phase::Recompute, 512, 256, 128), rules, {}, {}).value,
            static_cast<std::int64_t>((3 - 5) * m * k + 3 * n * k));  // the forward's casts run again
  EXPECT_EQ(further_casts(linear(Phase::WeightGrad, 512, 256, 128), {}, {}, {}).value, 0);
}

// data/kernels/row_scales.csv: the equations are those of scripts/row_scales.py, of which the preset has the result.
TEST(NarrowGathers, ScalesOfRowsAsPublished) {
  const EightBits& rules = framework_preset("torchtitan-rowwise").eight_bits;
  constexpr double kWide = 569e12, kNarrow = 1117e12, kStream = 0.89 * 2.4e12;
  std::vector<double> errors;
  std::ifstream table(FORESHARD_SOURCE "/data/kernels/row_scales.csv");
  std::string line;
  std::getline(table, line);
  ASSERT_EQ(line, "source,gpu,m,k,n,speedup");
  while (std::getline(table, line)) {
    long long m = 0, k = 0, n = 0;
    double speedup = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "%*[^,],%*[^,],%lld,%lld,%lld,%lf", &m, &k, &n, &speedup), 4) << line;
    const auto products = 6.0 * static_cast<double>(m * k) * static_cast<double>(n);
    const double streams = 10.0 * static_cast<double>(m * k + m * n) / (0.83 * kStream), wide = products / kWide + streams;
    double casts = 5.0 * static_cast<double>(m * k + m * n);
    for (const Phase phase : {Phase::Forward, Phase::InputGrad, Phase::WeightGrad})
      casts += static_cast<double>(further_casts(linear(phase, m, k, n), rules, {}, {}).value);
    const double narrow = products / kNarrow + streams + casts / kStream;
    if (wide >= 1e-3) errors.push_back(std::abs(wide / narrow / speedup - 1));
  }
  ASSERT_EQ(errors.size(), 148);
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], 0.04);
  EXPECT_LT(errors.back(), 0.16);
}

TEST(NarrowGathers, FrameworksOnTransformerEngineAndTorchao) {
  for (const char* name : {"megatron", "nemo", "megatron-bridge", "nemo-lora", "torchtitan"})
    EXPECT_TRUE(framework_preset(name).eight_bits.gathers) << name;
  for (const char* name : {"torchtitan-rowwise", "fsdp2", "foreshard", "llmq"})
    EXPECT_FALSE(framework_preset(name).eight_bits.gathers) << name;
  for (const char* name : {"nemo", "megatron-bridge"}) EXPECT_TRUE(framework_preset(name).eight_bits.parameters) << name;
  for (const char* name : {"torchtitan", "megatron-bridge-current"})
    EXPECT_TRUE(framework_preset(name).eight_bits.maxima) << name;
  EXPECT_FALSE(framework_preset("megatron-bridge").eight_bits.maxima);
  EXPECT_FALSE(framework_preset("megatron").eight_bits.parameters);  // with --fp8-param-gather
}

}  // namespace
}  // namespace foreshard::narrow_gathers_test
