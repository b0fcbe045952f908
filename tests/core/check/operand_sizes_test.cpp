#include "core/check/operand_sizes.h"

#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "tests/core/support_plan.h"

namespace foreshard::operand_sizes_test {
namespace {

using Sizes = std::vector<std::int64_t>;

Compute of(Operation op, std::vector<std::vector<std::int64_t>> shapes, Phase phase = Phase::Forward) {
  Compute compute{.op = std::move(op), .phase = phase};
  for (auto& dims : shapes) compute.shapes.push_back({.dims = std::move(dims)});
  return compute;
}
OperandSizes sizes(const Compute& compute, const Sizes& reads, const Sizes& writes) {
  return operand_sizes(compute, reads, writes).value();
}

}  // namespace

// x [6, 4], w [5, 4], bias [5] -> y [6, 5], whose columns may be two values of 2 and 3.
TEST(OperandSizes, OfAProduct) {
  const Compute forward = of(ops::MatMul{}, {{1, 6, 5, 4}});
  EXPECT_EQ(sizes(forward, {24, 20, 5}, {30}).reads, (Sizes{24, 20, 5}));
  EXPECT_EQ(sizes(forward, {24, 20}, {12, 18}).writes, (Sizes{12, 18}));
  EXPECT_EQ(sizes(forward, {24, 20}, {12, 19}).writes, (Sizes{12, 18}));
  const Compute weights = of(ops::MatMul{}, {{1, 6, 5, 4}}, Phase::WeightGrad);
  EXPECT_EQ(sizes(weights, {30, 24}, {20, 5}).reads, (Sizes{30, 24}));
  EXPECT_EQ(sizes(weights, {30, 24}, {20, 5}).writes, (Sizes{20, 5}));
  EXPECT_NE(sizes(of(ops::MatMul{}, {{2, 6, 5, 4}}), {24, 20}, {30}).wrong, "");
  EXPECT_NE(sizes(of(ops::MatMul{}, {{6, 5, 4}}), {24, 20}, {30}).wrong, "");
}

// 2 samples of 3 positions, 4 query heads and 2 key heads of 8: rows of (4 + 2 x 2) 8 = 64 elements.
TEST(OperandSizes, OfAttention) {
  const ops::Attention op{.heads = 4, .kv_heads = 2, .dim = 8};
  const Compute forward = of(op, {{2, 3, 4, 8}, {2, 3, 2, 8}});
  EXPECT_EQ(sizes(forward, {384}, {192, 24}).reads, (Sizes{384}));
  EXPECT_EQ(sizes(forward, {384}, {192, 24}).writes, (Sizes{192, 24}));
  EXPECT_EQ(sizes(forward, {192, 192}, {192, 24}).reads, (Sizes{192, 192}));
  EXPECT_NE(sizes(of(op, {{2, 3, 5, 8}, {2, 3, 2, 8}}), {384}, {192, 24}).wrong, "");
  EXPECT_EQ(samples_of(forward), 2);
}

TEST(OperandSizes, AreNotKnownWithoutShapesNorForKernelsThatDoNotExist) {
  EXPECT_FALSE(operand_sizes(of(ops::MatMul{}, {}), {}, {}).has_value());
  EXPECT_NE(sizes(of(ops::TokenEmbedding{}, {{4, 8, 16}}, Phase::Backward), {}, {}).wrong, "");
}

// Any sizes may stand in a plan: products stop at the largest number.
TEST(OperandSizes, DoNotOverflow) {
  const std::int64_t many = std::int64_t{1} << 49U;
  EXPECT_EQ(sizes(of(ops::MatMul{}, {{1, many, many, many}}), {1, 1}, {1}).reads[0], INT64_MAX);
}

// The weights of the small plan have 16 x 16 elements.
TEST(OperandSizes, AnOperandOfAnotherSizeIsRefused) {
  Plan plan = small_plan();
  Instruction& adam = instruction_named(plan, "update", "adam");
  std::get<Compute>(adam.what).shapes = {{.dims = {256}, .dtype = DType::F32}};
  EXPECT_TRUE(check_plan(plan).empty());
  std::get<Compute>(adam.what).shapes[0].dims[0] = 255;
  ASSERT_FALSE(check_plan(plan).empty());
  EXPECT_EQ(check_plan(plan)[0].rule, "operand-size");
  EXPECT_EQ(check_plan(plan)[0].what, "adam: its read 0 has 256 elements, expected 255 from its shapes and settings");
}

}  // namespace foreshard::operand_sizes_test
